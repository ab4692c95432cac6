"""Is a view of contributions as fast as one of weights? python -m benchmarks.contributions

The shape of MiniLM or GPT-2 (random weights), one text of 128 tokens: what a page asks for when the
switch is turned, both sides in turns, each request new. And what output projections cost a capture.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

import attention_atlas as aa
from attention_atlas.page.live.answers import make_answers
from benchmarks.machine import about

ROUNDS = 7


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def turns(sides: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median seconds of each side, in turns."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, work in sides.items():
            took[name].append(timed(work))
    return {name: statistics.median(times) for name, times in took.items()}


def answer(atlas: aa.Atlas, path: str) -> Callable[[], Any]:
    """A request to a server that has read the projections but kept no answer."""
    answers = make_answers([atlas])[0]

    def ask() -> None:
        answers._forget()
        vars(answers.session.subject)["_moved"].clear()
        answers.packet(path)

    return ask


def main() -> None:
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=500, n_positions=256)
    model = hf.GPT2LMHeadModel(config).eval()
    inputs = [{"input_ids": torch.randint(0, 500, (1, 128))} for _ in range(4)]
    atlas = aa.capture(model, inputs, progress=False)
    atlas.output.projection("decoder", 0)
    print(about())
    for title, path in {
        "all layers (edges/0/decoder)": "edges/0/decoder",
        "one layer (layer/0/decoder/5)": "layer/0/decoder/5",
        "one head (rows/0/L5H1)": "rows/0/L5H1",
    }.items():
        sides = {
            "weights": answer(atlas, path),
            "moved": answer(atlas, f"as/moved/-/{path}"),
            "contribution": answer(atlas, f"as/contribution/-/{path}"),
        }
        for work in sides.values():
            work()
        took = turns(sides)
        print(title, {name: f"{1000 * seconds:.1f} ms" for name, seconds in took.items()})
    many = [{"input_ids": torch.randint(0, 500, (1, 32))} for _ in range(64)]
    captures = turns({
        "none": lambda: aa.capture(model, many, progress=False, projections="none"),
        "auto": lambda: aa.capture(model, many, progress=False),
    }) if "--capture" in sys.argv else {}  # fmt: skip
    print("capture of 64 texts", {name: f"{seconds:.2f} s" for name, seconds in captures.items()})
    atlas = aa.capture(model, many, progress=False)
    print(
        "attribution of one logit",
        f"{1000 * turns({'': lambda: atlas.attribution(0, 5)})['']:.1f} ms",
    )


if __name__ == "__main__":
    main()
