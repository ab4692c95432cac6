"""Is what we recompute what the model computed?

Before a capture a few inputs are run plainly, and watched in each way in turn. For every layer the
weights that the reader's NumPy code recomputes are compared with the weights that the model used,
and the layer's output with that of the plain run. The first way with no inexact layer is taken.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.models.threads import matrix_threads
from attention_atlas.names.errors import AtlasError, ModelError
from attention_atlas.record.places.streams import (
    Ends,
    ends_of,
    in_odd_parts,
    real_ends,
    refuse_hidden_pads,
)
from attention_atlas.record.prove.layer_errors import Finding, Weights, bound_of, own_weights
from attention_atlas.record.prove.outlets import Outlets
from attention_atlas.record.prove.witnesses import output_errors, unseen
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import LayerCalls, TowerKey, layers_of, name_towers
from attention_atlas.record.watch.linear import Made, linear_outputs
from attention_atlas.record.watch.pieces import CannotSplit, Forms, Piece, pieces
from attention_atlas.record.watch.plain import plain_run
from attention_atlas.record.watch.setting import runs_fused
from attention_atlas.record.watch.ways import WAYS, watching
from attention_atlas.store.cores import each
from attention_atlas.store.manifest import Receipt, Rows


@dataclass(frozen=True)
class TriedBatch:
    """What was recorded of one batch of a trial."""

    layers: list[LayerCalls]
    real: dict[str, Tensor]  # (B, N) bool for each known stream: which places are not padding
    inputs: int


@dataclass
class Trial:
    """The result of trying a model in one way: how to capture it, and how exact that is."""

    way: str
    fast: bool
    alone: bool  # inputs run one at a time
    names: dict[TowerKey, str]
    causal: set[TowerKey]
    ends: dict[tuple[TowerKey, int], Ends]
    batches: list[TriedBatch]
    receipt: Receipt
    own: list[dict[tuple[str, int], Weights]] = field(default_factory=list)  # by input tried
    made: Made = field(default_factory=dict)  # outputs of linear layers, of the first batch
    cut: tuple[bool, ...] = ()  # by input tried: whether only its first tokens were
    outlets: Outlets | None = None  # of the first batch; None: not looked for

    @property
    def layers(self) -> list[LayerCalls]:
        """Return the layers of the first batch."""
        return self.batches[0].layers


@dataclass
class TrialInputs:
    """A few inputs as batches for the model."""

    batches: list[tuple[dict[str, Tensor], dict[str, Tensor]]]
    alone: bool


class Unsuited(Exception):  # noqa: N818 (a signal to try the next way, not an error)
    """The signal that a model cannot be watched in one way; the message says why."""


def try_ways(loaded: Loaded, items: list[Encoded], seed: int = 0) -> Trial:
    """Try each way on a few inputs; return the trial of the first exact way, else of the best."""
    trials: list[Trial] = []
    against: list[str] = []
    for way in WAYS:
        try:
            trial = _try(loaded, items, way, seed)
        except Unsuited as reason:
            against.append(f"{way}: {reason}")
            continue
        if trial.receipt.exact:
            return _with_reasons(trial, against)
        against.append(f"{way}: {_fault(trial.receipt)}")
        trials.append(trial)
    if not trials:
        raise ModelError(
            f"no attention could be captured from {type(loaded.model).__name__} "
            f"({'; '.join(against)})"
        )
    best = max(
        trials,
        key=lambda trial: (
            sum(layer.exact for layer in trial.receipt.layers),
            -WAYS.index(trial.way),
        ),
    )
    return _with_reasons(best, against)


def _with_reasons(trial: Trial, against: list[str]) -> Trial:
    others = tuple(reason for reason in against if not reason.startswith(f"{trial.way}: "))
    return replace(trial, receipt=replace(trial.receipt, not_taken=others))


def _fault(receipt: Receipt) -> str:
    """Return a sentence that says why a receipt is not exact."""
    for layer in receipt.layers:
        if not layer.exact:
            return f"layer {layer.layer} of {layer.tower}: {layer.reason}"
    return f"not seen: {', '.join(receipt.missing)}"


def _try(loaded: Loaded, items: list[Encoded], way: str, seed: int) -> Trial:
    """Try one way on a batch if that is exact, else input by input: some models see padding."""
    together = _together(loaded, items)
    if together is not None:
        with suppress(CannotSplit):
            trial = _compare(loaded, together, way, seed)
            if trial.receipt.exact:
                return trial
    try:
        return _compare(loaded, _one_by_one(loaded, items), way, seed)
    except CannotSplit as problem:
        raise Unsuited("its attention cannot be split by input") from problem


def _together(loaded: Loaded, items: list[Encoded]) -> TrialInputs | None:
    if len(items) == 1:
        return None
    try:
        return TrialInputs([collate(items, loaded)], alone=False)
    except ValueError:
        return None


def _one_by_one(loaded: Loaded, items: list[Encoded]) -> TrialInputs:
    return TrialInputs([collate([item], loaded) for item in items], alone=len(items) > 1)


@contextmanager
def _faults_of_model() -> Iterator[None]:
    """Turn an exception of the model into Unsuited; leave our own errors and lack of memory."""
    try:
        yield
    except (AtlasError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as problem:  # models raise all kinds of errors; the next way may work
        raise Unsuited(f"{type(problem).__name__}: {problem}") from problem


def _compare(loaded: Loaded, given: TrialInputs, way: str, seed: int) -> Trial:
    comparison = Comparison(loaded.model, way, seed)
    for tensors, real in given.batches:
        comparison.add(tensors, real)
    return comparison.trial(given.alone)


@dataclass(frozen=True)
class _LayerParts:
    """The pieces of one layer, and where what is found of them goes."""

    layer: LayerCalls
    name: tuple[str, int]
    finding: Finding
    by_row: list[list[Piece]]
    own: list[dict[tuple[str, int], Weights]]

    def compare(self) -> None:
        """Compare the pieces of each input with the model's own weights, and keep these."""
        for parts, own in zip(self.by_row, self.own, strict=True):
            self.finding.add(parts, self.layer)
            if all(part.weights is not None for part in parts):
                own[self.name] = _block_diagonal([own_weights(part) for part in parts])


class Comparison:
    """A comparison of a model watched in one way with its plain runs, batch by batch."""

    def __init__(self, model: Any, way: str, seed: int):
        self.model, self.way, self.seed = model, way, seed
        self.fast = way == "named" and runs_fused(model)
        self.batches: list[TriedBatch] = []
        self.names: dict[TowerKey, str] = {}
        self.ends: dict[tuple[TowerKey, int], Ends] = {}
        self.findings: dict[tuple[TowerKey, int], Finding] = {}
        self.own: list[dict[tuple[str, int], Weights]] = []
        self.missing: set[str] = set()
        self.made: Made = {}
        self.outlets: Outlets | None = None
        self.rows = 0

    def add(self, tensors: dict[str, Tensor], real: dict[str, Tensor]) -> None:
        """Run one batch, watched and plainly, and add its errors to the findings."""
        with _faults_of_model():
            calls = self.observed(tensors)
        layers = layers_of(calls)
        if not layers:
            raise Unsuited("no attention seen")
        batch = len(next(iter(tensors.values())))
        if not self.batches:
            self.names = name_towers(self.model, layers, set())
            self.ends = ends_of(self.model, layers, self.names, real, batch)
        refuse_hidden_pads(self.model, layers, self.ends, real)
        self.batches.append(TriedBatch(layers, real, batch))
        outputs = self.beside_plain(tensors, layers, calls) if self.way != "outputs" else {}
        self.own += [{} for _ in range(batch)]
        forms = Forms()
        found = [
            self._add_layer(layer, outputs.get(layer.first.module, 0.0), real, batch, forms)
            for layer in layers
        ]
        with matrix_threads(1):  # layers are shared among the cores
            each(lambda parts: parts.compare(), found)

    def observed(self, tensors: dict[str, Tensor]) -> list[Call]:
        """Return the calls of one batch, with the model's own weights."""
        if self.way == "outputs" or self.outlets is not None:
            return watching(self.model, self.way, detail=True, seed=self.seed)(tensors)
        outlets = Outlets(self.model)
        watch = watching(self.model, self.way, detail=True, seed=self.seed, late=[outlets])
        with outlets.watched():
            calls = watch(tensors)
        self.outlets = outlets
        return calls

    def beside_plain(
        self, tensors: dict[str, Tensor], layers: list[LayerCalls], calls: list[Call]
    ) -> dict[str, float]:
        """Return the error of each module's output; note attention that only plain runs show."""
        modules = {layer.first.module for layer in layers}
        with _faults_of_model():
            with linear_outputs(self.model, modules) as outputs_of_linear:
                plain = plain_run(self.model, tensors, modules, self.seed)
            errors = output_errors(self.model, tensors, plain, self.way, self.fast, self.seed)
        self.made = self.made or outputs_of_linear
        self.missing |= unseen(self.model, plain, calls, self.way)
        return errors

    def _add_layer(
        self, layer: LayerCalls, error: float, real: dict[str, Tensor], batch: int, forms: Forms
    ) -> "_LayerParts":
        ends = self.ends[layer.tower_key, layer.number]
        finding = self.findings.setdefault((layer.tower_key, layer.number), Finding())
        finding.output_error = max(finding.output_error, error)
        finding.in_odd_parts |= in_odd_parts(self.model, layer, ends, real)
        finding.unknown |= {
            name for calls in layer.steps for call in calls for name in call.unknown
        }
        by_row = []
        for row in range(batch):
            queries, keys = real_ends(ends, real, row)
            by_row.append(pieces(layer, row, batch, queries, keys, forms))
            self.rows += sum(part.query.shape[1] for part in by_row[-1])
        name = (self.names[layer.tower_key], layer.number)
        return _LayerParts(layer, name, finding, by_row, self.own[-batch:])

    def trial(self, alone: bool) -> Trial:
        """Return the trial of the whole model."""
        causal = {
            tower
            for tower in self.names
            if not tower[1]
            and all(layer.causal for (key, _), layer in self.findings.items() if key == tower)
        }
        names = _renamed(self.model, self.batches[0].layers, causal, self.names, self.own)
        bound = bound_of(self.model.dtype)
        receipt = Receipt(
            how=self.way,
            dtype=str(self.model.dtype).removeprefix("torch."),
            bound=bound,
            layers=tuple(
                finding.receipt(names[tower], number, bound)
                for (tower, number), finding in self.findings.items()
            ),
            missing=tuple(sorted(self.missing)),
            tried=Rows(self.rows, self.rows),
        )
        return Trial(
            self.way, self.fast, alone, names, causal, self.ends, self.batches, receipt, self.own,
            self.made, outlets=self.outlets,
        )  # fmt: skip


def _renamed(
    model: Any,
    layers: list[LayerCalls],
    causal: set[TowerKey],
    before: dict[TowerKey, str],
    own: list[dict[tuple[str, int], Weights]],
) -> dict[TowerKey, str]:
    """Name the towers again, now that causal ones are known; return the names, change `own`."""
    after = name_towers(model, layers, causal)
    new = {before[group]: after[group] for group in before}
    for weights in own:
        moved = {(new[tower], number): value for (tower, number), value in weights.items()}
        weights.clear()
        weights.update(moved)
    return after


def _block_diagonal(blocks: list[Weights]) -> Weights:
    if len(blocks) == 1:
        return blocks[0]
    n, m = (sum(block.shape[axis] for block in blocks) for axis in (1, 2))
    whole = np.zeros((blocks[0].shape[0], n, m), np.float32)
    n0 = m0 = 0
    for block in blocks:
        whole[:, n0 : n0 + block.shape[1], m0 : m0 + block.shape[2]] = block
        n0, m0 = n0 + block.shape[1], m0 + block.shape[2]
    return whole
