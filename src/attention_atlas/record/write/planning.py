"""How does a model with its inputs become a plan?

The first tokens of a few inputs are tried in every way (the receipt); the sizes of their vectors
decide which inputs make a shard. What the trial recorded also tells, once for all shards, which
modules fp16 is too coarse for. Whether patches are where we expect them takes two passes more, for
pictures alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from attention_atlas.edits.anatomy import anatomy_of
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.planned import needs_lone_inputs, plan_edits, planned_stack
from attention_atlas.edits.trial import edited_trial
from attention_atlas.models.encode import Encoded
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError
from attention_atlas.record.places.streams import Ends, sizes
from attention_atlas.record.places.survey import Survey
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.prove.shorten import try_shortened
from attention_atlas.record.prove.spot_check import Lighten, samples_of
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.watch.ways import watching
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.options import ALL, NONE, Capturing
from attention_atlas.record.write.plan import CapturePlan, PlannedLayer
from attention_atlas.record.write.rounding import check_batch
from attention_atlas.record.write.shard_tables import made_streams
from attention_atlas.record.write.tables import own_columns

NEAR = 8  # of so many first inputs, two of different length are used for the receipt
SHARE_OF_GPU = 1 / 16  # of its memory, for vectors that wait to be measured


@dataclass(frozen=True)
class Planned:
    """A plan, and the trial that it is based on."""

    plan: CapturePlan
    trial: Trial
    tried: list[int]  # numbers of the inputs of the trial


def make_plan(
    corpus: Corpus,
    capturing: Capturing,
    loading: Mapping[str, Any] | None = None,
    edits: Sequence[Edit] = (),
    at_batches: bool = True,
) -> Planned:
    """Try the model on a few inputs; return the plan for all inputs.

    at_batches  shards end where a batch does; older captures were cut anywhere
    """
    _refuse_bad_inputs(corpus)
    near = [corpus.encode(number) for number in range(min(NEAR, len(corpus.given)))]
    tried = _to_try(near)
    trial = try_shortened(corpus.loaded, [near[number] for number in tried], capturing.seed)
    _refuse_nothing_exact(trial)
    editing = None
    if edits:
        items = {number: near[number] for number in tried}
        trial, editing = _edited(trial, edits, corpus, items, capturing.seed)
        _refuse_nothing_exact(trial)
    sizes, room = _sizes(corpus, trial, near, capturing), _room(corpus.loaded, capturing)
    plan = CapturePlan(
        capturing, trial.way, trial.fast, trial.alone, trial.receipt.bound, _layers(trial),
        cut_shards(sizes, capturing, room, at_batches), own_columns(corpus.given.values()),
        loading=loading, editing=editing, final=_final(trial, capturing),
    )  # fmt: skip
    first = [near[number] for number in tried]
    cut = tuple(number for number, is_cut in zip(tried, trial.cut, strict=False) if is_cut)
    fine = () if "weights" in capturing.keep else _too_coarse(plan, trial)
    trusted = _trusted(plan, trial, corpus.loaded, first)
    return Planned(replace(plan, fine=fine, cut=cut, trusted=trusted), trial, tried)


def _final(trial: Trial, capturing: Capturing) -> tuple[str, str] | None:
    """Return the final norm and the stream that it reads: that of the last layer before it."""
    outlets = trial.outlets
    if outlets is None or outlets.read is None or capturing.projections == NONE:
        return None
    events = {site: outlet.event for site, outlet in outlets.found.items()}
    before = [
        (events[site], layer)
        for layer in trial.layers
        if (site := (layer.first.module, layer.first.visit)) in events
        and events[site] < outlets.read.event
    ]
    if not before:
        return None
    last = max(before, key=lambda entry: entry[0])[1]
    return outlets.read.norm, trial.ends[last.tower_key, last.number].queries


def _edited(
    plain: Trial, edits: Sequence[Edit], corpus: Corpus, items: dict[int, Encoded], seed: int
) -> tuple[Trial, dict[str, Any]]:
    """Try the model again with edits; return that trial, and the edits for the plan."""
    if plain.way == "outputs":
        raise ModelError("this model gives its weights alone, so it cannot be captured with edits")
    known = anatomy_of(plain, len(items))
    editing = plan_edits(edits, known, corpus.given)
    stack = planned_stack(editing, corpus.loaded)
    alone = replace(plain, alone=plain.alone or needs_lone_inputs(edits))
    return edited_trial(corpus.loaded, items, alone, stack, known, seed), editing


def _refuse_bad_inputs(corpus: Corpus) -> None:
    """Raise an InputError early for an input that is too long, where encoding is cheap."""
    for number, given in corpus.given.items():
        if given.kind in ("text", "pair") and corpus.is_cheap(number):
            corpus.encode(number)


def _to_try(near: list[Encoded]) -> list[int]:
    """Return two short inputs, of different length if possible, so that padding is tried."""
    lengths = [[len(tokens) for tokens in item.streams.values()] for item in near]
    first, *others = sorted(range(len(near)), key=lambda number: lengths[number])
    unequal = [number for number in others if lengths[number] != lengths[first]]
    return [first, *(unequal or others)[:1]]


def _refuse_nothing_exact(trial: Trial) -> None:
    if not any(layer.exact for layer in trial.receipt.layers):
        raise ModelError(
            f"no layer of this model could be captured exactly; the first layer: "
            f"{trial.receipt.layers[0].reason}"
        )


def _layers(trial: Trial) -> tuple[PlannedLayer, ...]:
    exact = {(layer.tower, layer.layer) for layer in trial.receipt.layers if layer.exact}
    planned = []
    for layer in trial.layers:
        tower, ends = trial.names[layer.tower_key], trial.ends[layer.tower_key, layer.number]
        planned.append(
            PlannedLayer(
                *layer.tower_key, layer.number, layer.first.module, layer.first.visit, tower,
                ends.queries, ends.keys, (tower, layer.number) in exact,
            )
        )  # fmt: skip
    return tuple(planned)


def cut_shards(
    sizes: Sequence[float], capturing: Capturing, room: int, at_batches: bool
) -> tuple[tuple[int, int], ...]:
    """Return the first and last input (exclusive) of shards of about `shard_bytes` each.

    sizes       the bytes of each input
    room        bytes that a shard may take until it holds a whole batch
    at_batches  inputs that would begin another batch are left to the next shard
    """
    shards, first, size = [], 0, 0.0
    for number, own in enumerate(sizes):
        size += own
        count = number + 1 - first
        if size >= (capturing.shard_bytes if count >= capturing.batch_size else room):
            whole = at_batches and count >= capturing.batch_size
            end = number + 1 - (count % capturing.batch_size if whole else 0)
            shards.append((first, end))
            first, size = end, sum(sizes[end : number + 1])
    return tuple(shards if first == len(sizes) else [*shards, (first, len(sizes))])


def _sizes(corpus: Corpus, trial: Trial, near: list[Encoded], capturing: Capturing) -> list[float]:
    """Return the bytes of each input, and tell the corpus.

    Inputs that are costly to encode are taken to be as large as the largest of the first few, or
    larger if their text is longer.
    """
    layers = _layer_sizes(trial)
    largest = max(bytes_of(item, layers, capturing.generate) for item in near)
    longest = max(_letters(corpus, number) for number in range(len(near)))
    for number in corpus.given:
        if corpus.is_cheap(number):
            own = float(bytes_of(corpus.encode(number), layers, capturing.generate))
        else:
            own = largest * max(1.0, _letters(corpus, number) / longest)
        corpus.sizes[number] = own
    return [corpus.sizes[number] for number in corpus.given]


def _room(loaded: Loaded, capturing: Capturing) -> int:
    """Return how many bytes of a shard's vectors may wait on the model's device.

    Where vectors are measured on a GPU and dropped, a shard takes a whole batch if that has room.
    """
    device = loaded.model.device
    if device.type != "cuda" or capturing.vectors == ALL:
        return capturing.shard_bytes
    memory = torch.cuda.get_device_properties(device).total_memory
    return max(capturing.shard_bytes, int(memory * SHARE_OF_GPU))


def _letters(corpus: Corpus, number: int) -> int:
    given = corpus.given[number]
    return 1 + len(given.text or "") + len(given.second or "")


@dataclass(frozen=True)
class _LayerSize:
    """What the bytes of a layer depend on; many layers have the same."""

    ends: Ends
    tried: tuple[int, int]  # queries and keys of an input of the trial
    heads: int
    groups: int
    width: int
    value_width: int

    def bytes_of(self, item: Encoded, new: int) -> int:
        """Return the estimated bytes of one input in a layer."""
        n, m = (
            len(item.streams[stream]) + new if stream in item.streams else count
            for stream, count in zip((self.ends.queries, self.ends.keys), self.tried, strict=True)
        )
        size = 2 * (n * self.heads * self.width + m * self.groups * (self.width + self.value_width))
        return size if self.width else size + 4 * self.heads * n * m


def _layer_sizes(trial: Trial) -> Counter[_LayerSize]:
    """Count the layers of each size."""
    counts = Counter[_LayerSize]()
    for layer in trial.layers:
        call = layer.first
        _, heads, _, width = call.query.shape
        tried = sizes(layer, len(call.query) if not trial.alone else 1)
        ends = trial.ends[layer.tower_key, layer.number]
        groups, value_width = call.key.shape[1], call.value.shape[-1]
        counts[_LayerSize(ends, tried, heads, groups, width, value_width)] += 1
    return counts


def bytes_of(item: Encoded, layers: Counter[_LayerSize], new: int = 0) -> int:
    """Return the estimated bytes of one input and `new` generated tokens in a shard."""
    return sum(count * layer.bytes_of(item, new) for layer, count in layers.items())


def _too_coarse(plan: CapturePlan, trial: Trial) -> tuple[str, ...]:
    """Return the modules for which fp16 is too coarse, by what the trial recorded."""
    coarse, dice = set[str](), torch.Generator().manual_seed(plan.capturing.seed)
    for batch in trial.batches:
        stored = [layer for layer in batch.layers if (layer.tower_key, layer.number) in plan.exact]
        coarse |= check_batch([_sampled(layer, dice) for layer in stored], plan, batch.real).coarse
    return tuple(sorted(coarse))


def _sampled(layer: LayerCalls, dice: torch.Generator) -> LayerCalls:
    steps = [
        tuple(replace(call, samples=tuple(samples_of([call], dice))) for call in calls)
        for calls in layer.steps
    ]
    return replace(layer, steps=tuple(steps))


def _trusted(
    plan: CapturePlan, trial: Trial, loaded: Loaded, items: list[Encoded]
) -> dict[str, bool]:
    """Return, for each tower that reads pictures, whether its patches are where we expect them."""
    batch = trial.batches[0]
    stored = [layer for layer in batch.layers if (layer.tower_key, layer.number) in plan.exact]
    asked = [
        (stream, item)
        for name, stream in made_streams(stored, plan, batch.inputs).items()
        for item in items[: batch.inputs]
        if stream.first and name not in item.streams
    ]
    if not asked:
        return {}
    seed = plan.capturing.seed
    watch = watching(loaded.model, plan.way, fast=plan.fast, light=Lighten(), seed=seed)
    survey = Survey(loaded, watch)
    for stream, item in asked:
        survey.try_tower(stream.path, stream.module, stream.n, item)
    return survey.trusted
