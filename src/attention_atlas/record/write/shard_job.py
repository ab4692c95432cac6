"""How does a shard become a job that runs here or elsewhere?"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from attention_atlas.engine.elsewhere import reach
from attention_atlas.engine.held import held
from attention_atlas.engine.job import Job
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.write.corpus import Corpus, as_json, from_json
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.shard import Bench, ShardRun, run_inputs
from attention_atlas.store.parts import Contents

RUN_SHARD = f"{__name__}:run_shard"


def shard_jobs(
    plan: CapturePlan, corpus: Corpus, shards: Iterable[int], key: str, work: str = RUN_SHARD
) -> Iterator[Job]:
    """Yield one job for each shard; the caller holds the bench under `key`."""
    text = plan.to_json()
    gpus, threads = gpu_count(corpus.loaded.model), torch.get_num_threads()
    for shard in shards:
        given = [corpus.given[number] for number in range(*plan.shards[shard])]
        asked = {
            "held": key, "plan": text, "shard": shard, "inputs": as_json(given), "threads": threads
        }  # fmt: skip
        # The caller saves the pictures of a shard, so it keeps its tables in hand.
        large = not any(item.images for item in given)
        yield Job(str(shard), work, asked, gpus, cpus=1 if gpus else threads, large=large)


def gpu_count(model: Any) -> int:
    """Count the GPUs that a model is spread over."""
    spread = getattr(model, "hf_device_map", None)
    if not spread:
        return int(model.device.type != "cpu")
    return len({str(place) for place in spread.values()} - {"cpu", "disk"})


def refuse_objects(loading: Mapping[str, Any] | None, corpus: Corpus) -> None:
    """Raise an error unless the model and all inputs can be described as JSON."""
    if loading is None:
        raise ModelError(
            "a model given as an object cannot be sent to other processes; give its hub id or a "
            "folder, or use the engine local with one worker"
        )
    for number, given in corpus.given.items():
        if as_json([given]) is None:
            raise InputError(
                f"input {number} has arrays or other objects, which cannot be sent to other "
                "processes; give texts and names of files, or use the engine local with one worker"
            )


def load_elsewhere(loading: Mapping[str, Any]) -> Loaded:
    """Load a model on a machine other than the caller's; its folders must be there too."""
    for name in ("model", "processor", "adapter"):
        if Path(loading.get(name) or "").is_absolute():
            reach(loading[name])
    return load(**loading)


def run_shard(asked: Mapping[str, Any]) -> Contents:
    """Run one shard of a plan; return its tensors and tables."""
    return start_shard(asked).contents()


def start_shard(asked: Mapping[str, Any]) -> ShardRun:
    """Run the inputs of one shard of a plan; return the run."""

    def make() -> Bench:
        plan = CapturePlan.from_json(asked["plan"])
        assert plan.loading is not None and asked["inputs"] is not None  # `refuse_objects`
        # Sums over other numbers of threads round in other ways.
        torch.set_num_threads(asked["threads"])
        return Bench(plan, load_elsewhere(plan.loading))

    bench = held(asked["held"], make)
    numbers = range(*bench.plan.shards[asked["shard"]])
    corpus = bench.corpus
    if corpus is None:
        given = dict(zip(numbers, from_json(asked["inputs"]), strict=True))
        corpus = Corpus(bench.loaded, given, bench.plan.capturing.truncate)
    return run_inputs(bench, corpus, numbers)
