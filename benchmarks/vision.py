"""Can an atlas of many pictures be built and served in bounded memory?

    python -m benchmarks.vision                    250 and 1,000 pictures of 197 tokens
    python -m benchmarks.vision --pictures 20      a small one, to see that it runs

A vision transformer of 12 layers × 3 heads × 64 with random weights reads 224 × 224 pixels in
patches of 16. Each step runs in a process of its own, which says how long it took and how much
memory it had at most: capture, layout (PCA, 5,000 tokens a head), measure, and the packets that a
page asks for at first: about, one input, a gaze of one head, a rollout, points, the coarsest and
the finest sheet of thumbnails. The same at a quarter of the pictures shows what grows. Every step
is added to vision.json as it ends, and the table drawn anew.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import about
from benchmarks.measure import peak, watch

RESULTS = Path(__file__).parent / "vision.md"
NUMBERS = RESULTS.with_suffix(".json")
SIZE, PATCH, LAYERS, HEADS, WIDTH = 224, 16, 12, 3, 192


def pictures(folder: Path, count: int) -> None:
    """Photographs they are not: blurred noise in colour, as large as photographs on the web."""
    import numpy as np
    from PIL import Image

    dice = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for number in range(count):
        coarse = dice.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        whole = Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC)
        whole.save(folder / f"{number:05d}.jpg", quality=85)


def capture(folder: Path) -> None:
    import torch
    import transformers

    import attention_atlas as aa

    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH, image_size=SIZE, patch_size=PATCH,
    )  # fmt: skip
    processor = transformers.ViTImageProcessorPil(size={"height": SIZE, "width": SIZE})
    model = transformers.ViTModel(config).eval()
    aa.capture(
        model, folder / "pictures", tokenizer=processor, path=folder / "x.atlas", progress=False
    )


def layout(folder: Path) -> None:
    import attention_atlas as aa

    aa.open(folder / "x.atlas").layout("pca", progress=False)


def measure(folder: Path) -> None:
    import attention_atlas as aa

    aa.open(folder / "x.atlas").measure(progress=False)


def served(folder: Path) -> None:
    import attention_atlas as aa
    from attention_atlas.page.live.answers import Answers

    atlas = aa.open(folder / "x.atlas")
    answers = Answers(atlas)
    finest = len(answers.answer("about").thumbs) - 1
    last = LAYERS - 1
    for path in (
        "about", "input/0", "picture/0/0", f"gaze/0/encoder/{last}/0",
        f"gaze/0/encoder/{last}/rollout", "points/pca-2d/encoder", "thumbs/0", f"thumbs/{finest}",
    ):  # fmt: skip
        start = time.perf_counter()
        packet, good = answers.packet(path)
        if not good:
            raise SystemExit(f"{path} was not answered: {packet[4:200]!r}")
        seconds = time.perf_counter() - start
        print(json.dumps({"path": path, "seconds": seconds, "bytes": len(packet)}))


STEPS: dict[str, Callable[[Path], None]] = {
    "capture": capture, "layout": layout, "measure": measure, "serve": served,
}  # fmt: skip


def one(step: str, folder: Path) -> None:
    """Do one step; the last line printed is its seconds, peak MiB, and MiB of its own at most."""
    own = [0.0]
    threading.Thread(target=watch, args=(own,), daemon=True).start()
    start = time.perf_counter()
    STEPS[step](folder)
    print(json.dumps([time.perf_counter() - start, peak(), own[0]]))


def run(step: str, count: int, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.vision", "--one", step, "--folder", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    seconds, most, own = json.loads(last)
    print(f"{count} pictures, {step}: {seconds:.1f} s, {most:.0f} MiB", flush=True)
    return {
        "pictures": count, "step": step, "seconds": seconds, "peak": most, "own": own,
        "packets": [json.loads(line) for line in lines], "machine": about(),
        "disk": sum(file.stat().st_size for file in (folder / "x.atlas").rglob("*.*")) / 2**20,
    }  # fmt: skip


def page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Many pictures", "", rows[-1]["machine"], "",
        "`peak` is all that the process had at most, files of the atlas that are mapped included: "
        "they stay as long as nobody else needs the room. `own` is without them.", "",
        "| pictures | step | seconds | own at most, MiB | peak, MiB |", "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {row['pictures']} | {row['step']} | {row['seconds']:.1f} | {row['own']:.0f} "
        f"| {row['peak']:.0f} |"
        for row in rows
    ]
    sizes = {row["pictures"]: row["disk"] for row in rows}
    lines += ["", *(f"{many} pictures: {disk:.0f} MiB on disk." for many, disk in sizes.items())]
    lines += ["", "| pictures | packet | seconds | MB |", "|---|---|---|---|"]
    lines += [
        f"| {row['pictures']} | {told['path']} | {told['seconds']:.3f} "
        f"| {told['bytes'] / 1e6:.2f} |"
        for row in rows
        for told in row["packets"]
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--folder", type=Path, help="kept, so that other steps can follow later")
    parser.add_argument("--one", choices=STEPS)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one, asked.folder)
        return
    with tempfile.TemporaryDirectory() as place:
        for count in asked.pictures:
            folder = (asked.folder or Path(place)) / str(count)
            if not folder.exists():
                pictures(folder / "pictures", count)
            for step in asked.steps:
                row = run(step, count, folder)
                known = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else []
                same = (row["pictures"], row["step"])
                rows = [old for old in known if (old["pictures"], old["step"]) != same] + [row]
                rows.sort(key=lambda one: (one["pictures"], list(STEPS).index(one["step"])))
                NUMBERS.write_text(json.dumps(rows, indent=1) + "\n")
                RESULTS.write_text(page(rows))


if __name__ == "__main__":
    main()
