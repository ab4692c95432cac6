"""The attacks, for as long as one likes: python -m tests.fuzz [--count 1000] [--seed 0] [KIND...].

Prints one table a kind (random, structured, calls, studies, commands) and every defect; exits 1 if
there is one. Files are those of the atlases of `made.py`, or of one of them (--atlas texts).
`tests/test_fuzz.py` runs a few cases of each.
"""

import argparse
import logging
import sys
import tempfile
from collections import Counter
from contextlib import chdir
from pathlib import Path

import torch
from huggingface_hub import constants
from transformers import ViTConfig, ViTModel

import attention_atlas as aa
from tests.atlases import word_tokenizer
from tests.fuzz.atlas_files import random_damage, structured_damage
from tests.fuzz.calls import run_calls, run_targets
from tests.fuzz.commands import cases, run_commands
from tests.fuzz.made import ATLASES, small_writer
from tests.fuzz.studies import studies

ON_FILES = {"random": random_damage, "structured": structured_damage}
KINDS = (*ON_FILES, "calls", "studies", "commands")
Outcomes = tuple[dict[str, Counter[str]], list[str]]


def main() -> int:
    """Run the kinds that were asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atlas", choices=ATLASES, action="append")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    constants.HF_HUB_OFFLINE = True  # names that are no files are not looked up
    failed = 0
    for kind in asked.kinds:
        on_files = kind in ON_FILES
        for name in (asked.atlas or list(ATLASES)) if on_files else ["pictures"]:
            with tempfile.TemporaryDirectory() as folder:
                counts, defects = attack(kind, name, Path(folder), asked.count, asked.seed)
            of = f" of {name}" if on_files else ""
            print(f"\n{kind}{of}, seed {asked.seed}\n{table(counts)}", flush=True)
            print("\n".join(defects), flush=True)
            failed += len(defects)
    return int(failed > 0)


def attack(kind: str, name: str, folder: Path, count: int, seed: int) -> Outcomes:
    """Run one kind of attack on a new atlas."""
    work = folder / "work"
    work.mkdir()
    if kind == "studies":
        with chdir(work):  # some odd values are names of folders
            return run_targets(studies(small_writer(), word_tokenizer(), work))
    atlas = ATLASES[name](folder / "made")
    if kind in ON_FILES:
        return ON_FILES[kind](atlas.path, work, count, seed)
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
