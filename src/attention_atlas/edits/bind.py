"""What is an edit in the model at hand? Its heads are found and its reference inputs are run."""

from collections.abc import Sequence
from dataclasses import replace

from attention_atlas.edits.anatomy import DOORS, Anatomy, ModelLayer
from attention_atlas.edits.edit import Edit, Stage
from attention_atlas.edits.hooks import Bound
from attention_atlas.edits.inputs import Given, thaw
from attention_atlas.edits.names import heads_by_layer
from attention_atlas.edits.reference import Collecting, Reference
from attention_atlas.models.encode import collate, encode
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.watch.door import Door
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer

MOST = 64  # inputs at hand that become reference inputs


def bind(
    loaded: Loaded, edits: Sequence[Edit], known: Anatomy, corpus: Sequence[Given] = ()
) -> list[Bound]:
    """Return edits with their heads and what their reference inputs gave.

    corpus  the inputs at hand, which are the reference inputs of edits that name none
    """
    bound = []
    for edit in with_references(edits, corpus):
        heads = heads_by_layer(edit.heads, known)
        _refuse(loaded, edit, heads, known)
        edit.check(heads)
        bound.append(Bound(edit, heads, _reference(edit, heads)))
    _run_references(loaded, bound, known)
    return bound


def with_references(edits: Sequence[Edit], corpus: Sequence[Given]) -> list[Edit]:
    """Return edits that name their reference inputs: those at hand, where they name none."""
    named = []
    for edit in edits:
        if edit.references == ():
            if not corpus:
                raise InputError(
                    f"{edit.kind} of {', '.join(edit.heads)} takes its values from other inputs; "
                    "give them as from_=[…]"
                )
            edit = replace(edit, from_=tuple(corpus[:MOST]))  # type: ignore[call-arg]
        named.append(edit)
    return named


def _refuse(
    loaded: Loaded, edit: Edit, heads: dict[ModelLayer, tuple[int, ...]], known: Anatomy
) -> None:
    name = type(loaded.model).__name__
    if known.way not in DOORS and edit.stage != Stage.output:
        raise ModelError(
            f"{name} does not call transformers' attention function, so only what its heads move "
            f"can be edited (ablate, scale, patch of the output), not its {edit.stage.name}"
        )
    parts = next((layer for layer in heads if layer.parts), None)
    chosen = edit.inputs is not None or edit.positions is not None or edit.stage == Stage.weights
    if parts is not None and (chosen or edit.references is not None):
        raise ModelError(
            f"{parts.name(heads[parts][0])} of {name} runs an input in parts, so {edit.kind} with "
            "single inputs, positions, patterns or other inputs cannot be done there"
        )


def _reference(edit: Edit, heads: dict[ModelLayer, tuple[int, ...]]) -> Reference | None:
    if edit.references is None:
        return None
    by_site = {(layer.module, layer.visit): picked for layer, picked in heads.items()}
    groups = {
        (layer.module, layer.visit): layer.groups_of(picked) for layer, picked in heads.items()
    }
    return Reference(by_site, groups, edit.sides)


def _run_references(loaded: Loaded, bound: list[Bound], known: Anatomy) -> None:
    """Run each reference input once, for all edits that read it."""
    needs_weights = any(each.edit.stage == Stage.weights for each in bound)
    readers: dict[Given, list[Reference]] = {}
    for each in bound:
        if each.reference is not None:
            each.reference.inputs = each.edit.references or ()
            for given in each.reference.inputs:
                readers.setdefault(given, []).append(each.reference)
    for given, references in readers.items():
        tensors, _ = collate([encode(loaded, thaw(given))], loaded)
        hook = Collecting(given, references, needs_weights)
        if known.way in DOORS:
            with Door(loaded.model, [hook], way=known.way, fast=known.fast).open():
                loaded.model(**tensors)
        else:
            tracer = Tracer(loaded.model, batch=1, hooks=[hook], record=False)
            with Setting(loaded.model, "eager").held(), tracer:
                loaded.model(**tensors)
