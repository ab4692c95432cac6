"""How does a shard become a job that runs here or elsewhere?"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attention_atlas.engine.held import held
from attention_atlas.engine.job import Job
from attention_atlas.models.load import load
from attention_atlas.names.errors import AtlasError
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
    gpus = int(corpus.loaded.model.device.type != "cpu")
    for shard in shards:
        inputs = as_json([corpus.given[number] for number in range(*plan.shards[shard])])
        asked = {"held": key, "plan": text, "shard": shard, "inputs": inputs}
        yield Job(str(shard), work, asked, gpus)


def run_shard(asked: Mapping[str, Any]) -> Contents:
    """Run one shard of a plan; return its tensors and tables."""
    return start_shard(asked).contents()


def start_shard(asked: Mapping[str, Any]) -> ShardRun:
    """Run the inputs of one shard of a plan; return the run."""

    def make() -> Bench:
        plan = CapturePlan.from_json(asked["plan"])
        if plan.loading is None or asked["inputs"] is None:
            raise AtlasError(
                "a model or inputs given as objects cannot be sent to another process; "
                "give their names"
            )
        return Bench(plan, load(**plan.loading))

    bench = held(asked["held"], make)
    numbers = range(*bench.plan.shards[asked["shard"]])
    corpus = bench.corpus
    if corpus is None:
        given = dict(zip(numbers, from_json(asked["inputs"]), strict=True))
        corpus = Corpus(bench.loaded, given, bench.plan.capturing.truncate)
    return run_inputs(bench, corpus, numbers)
