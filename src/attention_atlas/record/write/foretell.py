"""How many bytes and how much time will a capture take? This is said before it starts.

The sizes of vectors are known from the trial, those of inputs from their tokens. The time is that
of one batch, run once more where the corpus is so large that this costs nothing.
"""

import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from attention_atlas.models.encode import collate
from attention_atlas.names.errors import StoreError
from attention_atlas.names.out_of_memory import is_out_of_memory
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.output import kept_bytes_of_output
from attention_atlas.record.write.planning import Planned
from attention_atlas.record.write.shard import Bench, without_tensors

LARGE = 50 * 10**9  # bytes beyond which a sample is offered
_WORTH_TIMING = 50  # the corpus is so many times as large as the batch that is timed
_OFFER = "to keep a part of them: vectors='sample:20000' (--vectors sample:20000)"


@dataclass(frozen=True)
class Forecast:
    """What a capture will take."""

    inputs: int
    bytes: int
    seconds: float | None  # None: too short to be worth a trial
    output: int = 0  # bytes of projections and unembedding, once for all inputs

    def __str__(self) -> str:
        took = "" if self.seconds is None else f", {duration(self.seconds)}"
        offer = f"; {_OFFER}" if self.bytes > LARGE else ""
        count = "1 input" if self.inputs == 1 else f"{self.inputs:,} inputs"
        vectors = f"about {size(self.bytes)} of vectors" if self.bytes else "scores, no vectors"
        vectors += f", {size(self.output)} of output projections" if self.output else ""
        return f"capturing {count}: {vectors}{took}{offer}"


def foretell(planned: Planned, corpus: Corpus) -> Forecast:
    """Return what the capture of a corpus will take."""
    plan = planned.plan
    numbers = corpus.sizes if plan.kept is None else plan.kept
    all_bytes = sum(corpus.sizes.values())
    kept_bytes = sum(corpus.sizes[number] for number in numbers) * _share_kept(planned)
    seconds = _seconds(planned, corpus, all_bytes)
    output = kept_bytes_of_output(planned.trial, plan.capturing.projections)
    return Forecast(len(corpus.given), round(kept_bytes), seconds, output)


def refuse_without_room(folder: Path, forecast: Forecast) -> None:
    """Raise a StoreError if the disk has not enough room for what is still to be written."""
    written = sum(path.stat().st_size for path in (folder / "vectors").glob("*.safetensors"))
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free, need = shutil.disk_usage(there).free, forecast.bytes + forecast.output - written
    if need > free:
        raise StoreError(
            f"the vectors of {forecast.inputs:,} inputs need about {size(need)} and the disk of "
            f"{folder} has {size(free)} free; {_OFFER}, or name a folder on a larger disk"
        )


def tell(forecast: Forecast) -> None:
    """Print the forecast on stderr."""
    print(forecast, file=sys.stderr)


def _share_kept(planned: Planned) -> float:
    """Return the bytes that are stored, relative to those of all vectors in fp16."""
    keep, fine = planned.plan.capturing.keep, planned.plan.fine
    kept = total = 0
    for layer in planned.trial.layers:
        call = layer.first
        heads, groups, width = call.query.shape[1], call.key.shape[1], call.query.shape[3]
        sizes = {"query": heads * width, "key": groups * width,
                 "value": groups * call.value.shape[3]}  # fmt: skip
        total += 2 * sum(sizes.values())
        itemsize = 4 if call.module in fine else 2
        kept += itemsize * sum(count for what, count in sizes.items() if what in keep)
        if {"query", "key"} <= set(keep):
            kept += 4 * heads  # log-sum-exp
    return kept / total if total else 1.0


def _seconds(planned: Planned, corpus: Corpus, all_bytes: float) -> float | None:
    """Return the estimated seconds of all passes; None if the corpus is small."""
    plan = planned.plan
    count = 1 if plan.alone or plan.capturing.generate else plan.capturing.batch_size
    numbers = list(corpus.sizes)[:count]
    own_bytes = sum(corpus.sizes[number] for number in numbers)
    if own_bytes * _WORTH_TIMING > all_bytes or plan.capturing.generate:
        return None
    try:
        tensors, _ = collate([corpus.encode(number) for number in numbers], corpus.loaded)
    except ValueError:  # they cannot be padded together
        return None
    bench = Bench(plan, corpus.loaded, corpus)
    watch = bench.watch_with(lambda calls: [without_tensors(call) for call in calls])
    start = time.perf_counter()
    try:
        watch(tensors)
    except Exception as problem:
        if is_out_of_memory(problem):  # it will run in halves
            return None
        raise
    if corpus.loaded.model.device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) * all_bytes / own_bytes


def size(count: float) -> str:
    """Return a number of bytes in words, as in 3.5 GB."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if count >= 1000:
            count, unit = count / 1000, larger
    return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.2g} {unit}"


def duration(seconds: float) -> str:
    """Return a time in words, as in 12 minutes."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(1, round(seconds))} seconds"
