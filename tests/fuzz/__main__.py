"""The attacks, for as long as one likes: python -m tests.fuzz [--count 1000] [--seed 0] [KIND...].

Prints one table a kind (random, structured, calls, commands) and every defect; exits 1 if there is
one. `tests/test_fuzz.py` runs a few cases of each.
"""

import argparse
import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
from transformers import ViTConfig, ViTModel

import attention_atlas as aa
from tests.fuzz.atlas_files import random_damage, structured_damage
from tests.fuzz.calls import run_calls
from tests.fuzz.commands import cases, run_commands
from tests.fuzz.made import make_atlas

KINDS = ("random", "structured", "calls", "commands")
Outcomes = tuple[dict[str, Counter[str]], list[str]]


def main() -> int:
    """Run the kinds that were asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = 0
    for kind in asked.kinds:
        with tempfile.TemporaryDirectory() as folder:
            counts, defects = attack(kind, Path(folder), asked.count, asked.seed)
        print(f"\n{kind}, seed {asked.seed}\n{table(counts)}", flush=True)
        print("\n".join(defects), flush=True)
        failed += len(defects)
    return int(failed > 0)


def attack(kind: str, folder: Path, count: int, seed: int) -> Outcomes:
    """Run one kind of attack on a new atlas."""
    atlas = make_atlas(folder / "made")
    work = folder / "work"
    work.mkdir()
    if kind == "random":
        return random_damage(atlas.path, work, count, seed)
    if kind == "structured":
        return structured_damage(atlas.path, work, count, seed)
    if kind == "calls":
        return run_calls(aa.open(atlas.path), small_model())
    return run_commands(cases(atlas.path, work))


def small_model() -> ViTModel:
    """The model of the atlas that is attacked."""
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        image_size=32, patch_size=8,
    )  # fmt: skip
    return ViTModel(config).eval()


def table(counts: dict[str, Counter[str]]) -> str:
    """Return the outcomes as a Markdown table with a row for all."""
    names = list(dict.fromkeys(name for row in counts.values() for name in row))
    rows = {**counts, "**all**": sum(counts.values(), Counter())}
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    lines += [
        f"| {key} | " + " | ".join(str(row.get(name, 0)) for name in names) + " |"
        for key, row in rows.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
