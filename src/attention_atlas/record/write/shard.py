"""How are the inputs of one shard run, independently of the other shards?

batch ─ watch ─ spot-check ─┬─ pieces ─ … ─ tensors and tables, tokens numbered from 0
                            └─ again, where fp16 is too coarse
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.planned import frozen, planned_stack
from attention_atlas.edits.watch import watching_edited
from attention_atlas.models.encode import Encoded, Tokens, collate
from attention_atlas.models.load import Loaded
from attention_atlas.record.places.streams import Ends, real_ends, refuse_hidden_pads
from attention_atlas.record.places.survey import Survey
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.linear_map import norm_map
from attention_atlas.record.prove.spot_check import Lighten
from attention_atlas.record.watch.call import Call, Light
from attention_atlas.record.watch.final_scale import final_scales
from attention_atlas.record.watch.layers import LayerCalls, layers_of
from attention_atlas.record.watch.pieces import CannotSplit, Forms, Places, pieces, places
from attention_atlas.record.watch.ways import Watch, watching
from attention_atlas.record.write.batches import WORTH, Numbered, batches
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.generation import prompt_length, watch_writing
from attention_atlas.record.write.memory import Fitting
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.rounding import check_batch, strongest_weights
from attention_atlas.record.write.shard_tables import ShardRows, input_tokens, made_streams, tables
from attention_atlas.record.write.shard_tensors import ShardPieces
from attention_atlas.store.manifest import Rows
from attention_atlas.store.parts import Contents


@dataclass
class Bench:
    """What a process needs to run shards: the plan, the model, and what it learned about it."""

    plan: CapturePlan
    loaded: Loaded
    corpus: Corpus | None = None  # None in a process that has no inputs in memory
    orders: dict[Any, Any] = field(default_factory=dict)  # of patches, found by running the model
    fitting: Fitting = field(default_factory=Fitting)  # what fits into memory
    light: Lighten = field(default_factory=Lighten)  # of the shard that runs

    @cached_property
    def stack(self) -> Stack | None:
        """Return the edits of the plan, after their reference runs; None if there are none."""
        editing = self.plan.editing
        return None if editing is None else planned_stack(editing, self.loaded)

    @cached_property
    def final_norm(self) -> tuple[nn.Module, str, Tensor, Tensor] | None:
        """Return the final norm with its kind, gain and shift; None if there is none."""
        if self.plan.final is None:
            return None
        model = self.loaded.model
        module = model.get_submodule(self.plan.final[0])
        like = next((p for p in module.parameters() if p.dim() == 1), None)
        if like is None:
            return None
        found = norm_map(module, len(like), like.detach())
        return None if found is None else (module, *found)

    @cached_property
    def watch(self) -> Watch:
        """Return what watches the model in all shards."""
        return self.watch_with(lambda calls: self.light(calls))

    def watch_with(self, light: Light) -> Watch:
        """Prepare to watch the model, with the edits of the plan; `light` reduces the calls."""
        model, plan, seed = self.loaded.model, self.plan, self.plan.capturing.seed
        if self.stack is None:
            return watching(model, plan.way, fast=plan.fast, light=light, seed=seed)
        return watching_edited(model, self.stack, plan.way, fast=plan.fast, light=light, seed=seed)


def run_inputs(bench: Bench, corpus: Corpus, numbers: Sequence[int]) -> "ShardRun":
    """Run the model over some inputs in batches; return the run."""
    plan, capturing = bench.plan, bench.plan.capturing
    # Weights must be as exact as possible when they are asked for, so then nothing is rounded.
    light = Lighten(
        fine=set(plan.fine),
        everything="weights" in capturing.keep,
        seed=capturing.seed + min(numbers, default=0),
    )
    items = [(number, corpus.encode(number)) for number in numbers]
    one_by_one = plan.alone or capturing.generate
    size = 1 if one_by_one else capturing.batch_size
    model = bench.loaded.model
    worth = WORTH["cpu" if model.device.type == "cpu" else "gpu"]
    bench.light = light
    run = ShardRun(bench, corpus, items, bench.watch, light)
    for batch in batches(items, size, worth):
        bench.fitting.run(batch, run.add_split)
    return run


class ShardRun:
    """The run of one shard: its batches so far."""

    def __init__(
        self, bench: Bench, corpus: Corpus, items: list[Numbered], watch: Watch, light: Lighten
    ):
        self.plan, self.loaded = bench.plan, bench.loaded
        self.corpus, self.items, self.watch, self.light = corpus, items, watch, light
        self.stack = bench.stack
        self.final = bench.final_norm
        self.scales: list[Tensor] = []
        plain = watch
        if self.stack is not None:  # where patches are is found out without edits
            seed = bench.plan.capturing.seed
            plain = watching(bench.loaded.model, bench.plan.way, light=light, seed=seed)
        self.survey = Survey(bench.loaded, plain, dict(bench.plan.trusted), bench.orders)
        self.pieces = ShardPieces(bench.plan.capturing.keep)
        self.rows = ShardRows()
        self.run_error, self.compared = 0.0, Rows(0, 0)
        self.strongest: dict[str, dict[str, Any]] = {}  # weights of cut inputs, by input and layer

    def contents(self, everything: bool = False) -> Contents:
        """Return the tensors and tables of the shard.

        everything  the tensors of all inputs, not only of those whose vectors are kept
        """
        facts = {
            "run_error": self.run_error,
            "rows": vars(self.compared),
            "strongest": self.strongest,
            "fine": sorted(self.light.fine),
        }
        shard_tables = tables(self.items, self.corpus.given, self.rows, self.plan.columns)
        tensors = self.pieces.tensors(None if everything else self.plan.kept)
        return Contents(tensors, shard_tables, facts)

    def add_split(self, batch: list[Numbered]) -> None:
        """Run a batch, or its inputs one at a time if its rows cannot be split by input."""
        try:
            self.add(batch)
        except CannotSplit:  # this batch is the first to show it
            for alone in batch:
                self.add([alone])

    def add(self, batch: list[Numbered]) -> None:
        """Run a batch and keep its pieces and tokens."""
        items = [item for _, item in batch]
        try:
            tensors, real = collate(items, self.loaded)
        except ValueError as problem:  # they cannot be padded together
            if len(items) == 1:
                raise
            raise CannotSplit from problem
        if self.stack is not None:
            self.stack.numbers = tuple(number for number, _ in batch)
            self.stack.own = frozen(self.stack.numbers, self.corpus.given)
        self.light.told = any(number in self.plan.cut for number, _ in batch)
        none: AbstractContextManager[list[Tensor]] = nullcontext([])
        with none if self.final is None else final_scales(*self.final) as self.scales:
            calls, streams = self._observe(tensors, items)
        if self.plan.capturing.generate:
            real = {}
        layers = layers_of(calls)
        if len(items) > 1:
            refuse_hidden_pads(self.loaded.model, layers, self.plan.ends, real)
        layers = [layer for layer in layers if (layer.tower_key, layer.number) in self.plan.exact]
        checked = check_batch(layers, self.plan, real)
        self.run_error = worst(self.run_error, checked.error)
        coarse = checked.coarse | self.light.beyond()
        if not self.light.everything and coarse - self.light.fine:
            self.light.fine |= coarse
            self.add(batch)  # again, without rounding these modules
            return
        self.compared += checked.rows
        self.strongest |= strongest_weights(layers, self.plan, [n for n, _ in batch], real)
        self._keep(layers, batch, real)
        self._keep_scales(batch, real)
        made = made_streams(layers, self.plan, len(batch))
        for row, (number, item) in enumerate(batch):
            given = self.corpus.given[number]
            tokens = input_tokens(self.survey, streams[row], made, item, given)
            self.pieces.refuse_lost_tokens(number, tokens, self.plan)
            self.rows.tokens[number] = tokens
            if self.plan.capturing.generate:
                self.rows.prompts[number] = prompt_length(item)

    def _observe(
        self, tensors: dict[str, Tensor], items: list[Encoded]
    ) -> tuple[list[Call], list[dict[str, Tokens]]]:
        """Run a batch; return its calls, and the tokens of each input's known streams."""
        new = self.plan.capturing.generate
        if not new:
            return self.watch(tensors), [item.streams for item in items]
        calls, streams = watch_writing(self.watch, self.loaded, tensors, items[0], new)
        return calls, [streams]

    def _keep_scales(self, batch: list[Numbered], real: dict[str, Tensor]) -> None:
        """Keep the final norm's scale of every token, where the norm ran once a token."""
        if self.plan.final is None or not self.scales:
            return
        stream = self.plan.final[1]
        whole = torch.cat(self.scales, 1)
        if len(whole) != len(batch):
            return
        for row, (number, _) in enumerate(batch):
            kept = slice(None) if stream not in real else places(real[stream][row])
            self.pieces.scales[number] = whole[row][kept].float().cpu()

    def _keep(
        self, layers: list[LayerCalls], batch: list[Numbered], real: dict[str, Tensor]
    ) -> None:
        """Cut each layer into pieces by input."""
        forms = Forms()
        forms.look_at([call for layer in layers for calls in layer.steps for call in calls])
        known: dict[tuple[Ends, int], tuple[Places, Places]] = {}
        for layer in layers:
            ends = self.plan.ends[layer.tower_key, layer.number]
            name = (self.plan.names[layer.tower_key], layer.number)
            self.pieces.calls.setdefault(name, without_tensors(layer.first))
            for row, (number, _) in enumerate(batch):
                if (ends, row) not in known:
                    known[ends, row] = real_ends(ends, real, row)
                parts = pieces(layer, row, len(batch), *known[ends, row], forms)
                self.pieces.pieces[name][number] = parts


def without_tensors(call: Call) -> Call:
    """Return a call with a layer's constants, but without its tensors, to free the memory."""
    return replace(call, weights=None, output=None, lse=None, mask=None, bias=None, samples=(),
                   query=call.query[:0], key=call.key[:0], value=call.value[:0])  # fmt: skip
