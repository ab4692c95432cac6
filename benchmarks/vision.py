"""Can an atlas of many pictures be built and served in bounded memory?

    python -m benchmarks.vision                    1,000 pictures of 197 tokens
    python -m benchmarks.vision --pictures 20      a small one, to see that it runs

A vision transformer of 12 layers × 3 heads × 64 with random weights reads 224 × 224 pixels in
patches of 16. Each step runs in a process of its own, which says how long it took and how much
memory it had at most: capture, layout (PCA, 5,000 tokens a head), measure, and the packets that a
page asks for at first: about, one input, a gaze of one head, a rollout, points, the coarsest and
the finest sheet of thumbnails. The same at a quarter of the pictures shows what grows.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import about
from benchmarks.measure import peak

RESULTS = Path(__file__).parent / "vision.md"
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
    from attention_atlas.serve.answers import Answers

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
    """Do one step; the last line printed is its seconds and peak MiB."""
    start = time.perf_counter()
    STEPS[step](folder)
    print(json.dumps([time.perf_counter() - start, peak()]))


def run(step: str, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.vision", "--one", step, "--folder", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--one", choices=STEPS)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one, asked.folder)
        return
    steps = ["| pictures | step | seconds | peak MiB |", "|---|---|---|---|"]
    packets = ["| pictures | packet | seconds | MB |", "|---|---|---|---|"]
    for count in (max(4, asked.pictures // 4), asked.pictures):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            pictures(folder / "pictures", count)
            for step in STEPS:
                *lines, last = run(step, folder)
                seconds, most = json.loads(last)
                steps.append(f"| {count} | {step} | {seconds:.1f} | {most:.0f} |")
                for line in lines:
                    said = json.loads(line)
                    packets.append(
                        f"| {count} | {said['path']} | {said['seconds']:.3f} "
                        f"| {said['bytes'] / 1e6:.2f} |"
                    )
            size = sum(file.stat().st_size for file in (folder / "x.atlas").rglob("*.*"))
            steps.append(f"| {count} | folder on disk | – | {size / 2**20:.0f} |")
    lines = ["# Many pictures", "", about(), "", *steps, "", *packets]
    page = "\n".join(lines) + "\n"
    print(page)
    if asked.pictures == parser.get_default("pictures"):
        RESULTS.write_text(page)


if __name__ == "__main__":
    main()
