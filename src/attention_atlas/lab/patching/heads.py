"""What does a model answer when one head does what it did on another input?"""

from collections.abc import Iterator
from dataclasses import dataclass

from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import Given
from attention_atlas.edits.patch import patch
from attention_atlas.lab.answers import Question
from attention_atlas.lab.patching.align import Alignment
from attention_atlas.lab.patching.plan import EACH, Plan, Unit, short_name, units
from attention_atlas.lab.worlds import Scene


@dataclass(frozen=True)
class Transplant:
    """An input, the other input from which it is patched, and what is asked."""

    base: Scene
    source: Given
    align: Alignment | None  # (token of the base, token of the source)
    question: Question


@dataclass(frozen=True)
class Effect:
    """The metric in one world."""

    head: str
    value: float
    through: str = ""
    position: int | None = None
    token: str = ""


def head_effects(case: Transplant, plan: Plan) -> Iterator[Effect]:
    """Yield the metric with each head patched, at each position that the plan asks for."""
    scene = case.base
    places = [
        (unit, position)
        for unit in units(plan.heads, scene.known, plan.what)
        for position in _positions(scene, unit, plan)
    ]
    worlds: list[list[Edit]] = [[_patch(case, plan, *place)] for place in places]
    values = [value for logits in scene.logits(worlds) for value in case.question.read(logits)]
    for (unit, position), value in zip(places, values, strict=True):
        for head in unit.heads:
            name = short_name(scene.known, unit.layer, head)
            yield Effect(name, value, "", position, token_text(scene, unit, position))


def _patch(case: Transplant, plan: Plan, unit: Unit, position: int | None) -> Edit:
    return patch(
        unit.names(), plan.what, from_=case.source, align=case.align, positions=position,
        shared=True,
    )  # fmt: skip


def _positions(scene: Scene, unit: Unit, plan: Plan) -> list[int] | list[None]:
    if plan.positions is None:
        return [None]
    if plan.positions != EACH:
        return [int(position) for position in plan.positions]
    return list(range(len(_texts(scene, unit))))


def token_text(scene: Scene, unit: Unit, position: int | None) -> str:
    """Return the text of the token at a position, "" for all positions."""
    texts = _texts(scene, unit)
    return texts[position] if position is not None and position < len(texts) else ""


def _texts(scene: Scene, unit: Unit) -> list[str]:
    streams = scene.item.streams
    if not streams:
        return []
    return streams.get(unit.layer.tower, list(streams.values())[-1]).text
