"""Is a view of contributions as fast as one of weights? python -m benchmarks.contributions

The shape of GPT-2 (random weights), one text of 128 tokens: what a page asks for when the switch is
turned, all sides in turns, no answer kept. Seconds of the processor, not of the clock, so that
other work on the machine counts little. `turned` is a switch turned while weights are on screen, so
that the layers' weights are kept; `foreseen` is the same a moment later, when the server has made
what contributions need; `opened` is a link that opens on contributions. Then what a person waits
for, by the clock, in Chromium (`contributions_view.py`). And what projections cost a capture.
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
from benchmarks.contributions_view import measure
from benchmarks.machine import about

ROUNDS = 9


def timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def turns(sides: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median seconds of each side, in turns."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, work in sides.items():
            took[name].append(timed(work))
    return {name: statistics.median(times) for name, times in took.items()}


def answer(atlas: aa.Atlas, path: str, state: str = "opened") -> Callable[[], Any]:
    """A request to a server that has read the projections but kept no answer.

    state  "opened": nothing is kept; "turned": the weights of the layers, which a page shows;
           "foreseen": what contributions need of them, too
    """
    answers = make_answers([atlas])[0]
    grown = vars(answers.session.subject)

    def ask() -> None:
        answers._forget()
        if state != "foreseen":
            grown["_moved"].clear()
        if state == "opened":
            grown["_recent"]._kept.clear()
        answers.packet(path)

    answers.packet("edges/0/decoder")
    return ask


def main() -> None:
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=500, n_positions=256, bos_token_id=0, eos_token_id=0)
    model = hf.GPT2LMHeadModel(config).eval()
    inputs = [{"input_ids": torch.randint(0, 500, (1, 128))} for _ in range(4)]
    atlas = aa.capture(model, inputs, progress=False)
    for layer in range(config.n_layer):
        atlas.output.projection("decoder", layer)
    print(about())
    for title, path in {
        "all layers (edges/0/decoder)": "edges/0/decoder",
        "one layer (layer/0/decoder/5)": "layer/0/decoder/5",
        "one head (rows/0/L5H1)": "rows/0/L5H1",
    }.items():
        sides = {
            "weights": answer(atlas, path),
            **{
                f"{how}, {state}": answer(atlas, f"as/{how}/-/{path}", state)
                for how in ("moved", "contribution")
                for state in ("turned", "foreseen", "opened")
                if (how, state) != ("moved", "foreseen")
            },
        }
        for work in sides.values():
            work()
        took = turns(sides)
        for name, seconds in took.items():
            times = seconds / took["weights"]
            print(f"{title:32} {name:24} {1000 * seconds:7.1f} ms {times:6.2f} ×")
    for row in measure(atlas):
        print(row, flush=True)
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
