"""What do the new scores cost? Measuring with a model, without and with them, in turns.

python -m benchmarks.why [rounds]
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np

import attention_atlas as aa
from attention_atlas.studies import circuits

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "src" / "attention_atlas" / "studies" / "demo_atlas" / "sentences.txt"
NEW: dict[str, list[str] | None] = {
    "output_scores": [],
    "circuit_scores": [],
    "retrieval_score": None,
}


def main(rounds: int = 3) -> None:
    """Print seconds of both sides, their ratio, and the seconds of one head's directions."""
    texts = [line for line in TEXTS.read_text().splitlines() if line.strip()][:60]
    with tempfile.TemporaryDirectory() as folder:
        atlas = aa.capture("builtin:gpt", texts, path=Path(folder) / "x.atlas", progress=False)
        times: dict[str, list[float]] = {"before": [], "after": []}
        for _ in range(rounds):
            for side, spent in times.items():
                patches = [
                    patch.object(circuits, name, return_value=value)
                    for name, value in (NEW.items() if side == "before" else ())
                ]
                for each in patches:
                    each.start()
                began = perf_counter()
                atlas.measure("builtin:gpt", again=True, progress=False)
                spent.append(perf_counter() - began)
                for each in patches:
                    each.stop()
        began = perf_counter()
        heads = atlas.heads()["head"].tolist()[::6]
        for head in heads:
            atlas.directions(head)
        a_head = (perf_counter() - began) / len(heads)
    before, after = (float(np.median(times[side])) for side in ("before", "after"))
    print(f"{len(texts)} texts: {before:.1f} s without, {after:.1f} s with: {after / before:.2f}")
    print(f"directions of a head: {a_head:.2f} s")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
