"""How soon does the Lab show what an edit changes?

    python -m benchmarks.lab .cache/models/smollm2.gguf

For one sentence and each model, all in one run: a plain pass; the part of it from the edited layer
on (as a pass that starts there, which includes the norm and the head at the end); and the answer of
the action `edit`, packed as it is sent. An edit must add at most 300 ms to the part that it needs.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import torch

import attention_atlas as aa
from attention_atlas.lab.replay import Replay
from attention_atlas.models.load import load
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.model import LiveModel
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "lab.md"
TEXT = "The doctor asked the nurse a question. She said that the patient was well."
LONG = 8  # times the text
REPEATS = 5


def seconds(work: Callable[[], object]) -> float:
    """The median time of some runs, after one that is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return median(times[1:])


def lines(name: str, text: str) -> list[str]:
    """The rows of one model and text: an edit in its first, middle and last layer."""
    loaded = load(name)
    pair = loaded.model, loaded.processor
    atlas = aa.capture(pair, [text], progress=False)
    (answers,) = make_answers([atlas], [LiveModel(*pair)])
    tensors = loaded.tokenizer(text, return_tensors="pt")
    replay = Replay(loaded, {key: tensors[key] for key in ("input_ids", "attention_mask")})

    def plain() -> None:
        with torch.inference_mode():
            loaded.model(**tensors)

    whole, depth = seconds(plain), atlas.towers[0].depth
    began = time.perf_counter()
    _answer(answers, 0, iter([0.5]))
    first = time.perf_counter() - began
    rows, factors = [], iter(range(1, 1000))  # each edit is another one
    for layer in (0, depth // 2, depth - 1):
        part = seconds(partial(replay.run, [[aa.scale(f"L{layer}", 0.5)]]))
        answer = seconds(partial(_answer, answers, layer, factors))
        rows.append(
            f"| {Path(name).stem} | {tensors['input_ids'].shape[1]} | L{layer} of {depth} | "
            f"{1000 * whole:.0f} | {1000 * part:.0f} | {1000 * answer:.0f} | "
            f"{1000 * (answer - part):+.0f} | {first:.1f} |"
        )
    return rows


def _answer(answers: Answers, layer: int, factors: Iterator[float]) -> None:
    edit = aa.scale(f"L{layer}", 1 / next(factors)).to_json()
    _, done = answers.perform("edit", {"input": 0, "edits": [edit]})
    assert done


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the answers of the Lab.")
    parser.add_argument("models", nargs="*", default=[], help="besides builtin:gpt")
    torch.set_num_threads(1)  # threads of two processes on the same cores wait for each other
    names = ["builtin:gpt", *parser.parse_args().models]
    rows = [row for name in names for text in (TEXT, " ".join([TEXT] * LONG))
            for row in lines(name, text)]  # fmt: skip
    table = "\n".join(rows)
    RESULTS.write_text(
        f"""# How soon the Lab shows what an edit changes

{about()},
load average {os.getloadavg()[0]:.1f} at the end;
`python -m benchmarks.lab .cache/models/smollm2.gguf`, median of {REPEATS} runs, all in one process,
on one thread.

*Part*: a pass that starts at the edited layer (`lab/replay.py`). *Answer*: the action `edit`, with
predictions, recorded attention, the change of every head, packed. *First*: the first edit of an
input, which also finds out how the model can be edited and restarted, once for each model. At most
300 ms may be added to the part.

| model | tokens | edit in | plain pass, ms | part, ms | answer, ms | added, ms | first, s |
|---|---|---|---|---|---|---|---|
{table}
""",
        encoding="utf-8",
    )
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
