"""Which heads are there, of which kind, with which scores?"""

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, Field

from attention_atlas.names.errors import PickError
from attention_atlas.page.agents.answer import Answer, page_of, small
from attention_atlas.page.agents.arguments import Limit, Start
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.heads import head_scores
from attention_atlas.page.wire.heads import HeadScores

Kind = Literal["parallel", "radioactive", "homogeneous", "X-type", "compound", "mixed"]
USUAL = ("importance", "entropy", "first-token", "previous", "induction")
_OTHERS = ("head", "kind", "odd")  # what heads can be sorted by, besides their scores


class HeadLine(BaseModel):
    """One head: its kind, how clearly it leads, and the scores that were asked for."""

    head: str
    kind: str | None
    margin: float | None
    agree: float | None
    scores: dict[str, float | None]


class HeadsAnswer(Answer):
    """Heads with their kinds and scores."""

    total: int
    heads: list[HeadLine]
    chance: dict[str, float | None]
    all_scores: list[str]
    note: str = ""


def heads(
    bench: AgentBench,
    kind: Annotated[Kind | None, Field(description="Only heads of this kind.")] = None,
    layer: Annotated[int | None, Field(ge=0, le=100_000, description="Only this layer.")] = None,
    sort: Annotated[
        str, Field(max_length=60, description="A score (largest first), head, kind or odd.")
    ] = "head",
    scores: Annotated[
        list[str] | None, Field(max_length=20, description="Which scores to give.")
    ] = None,
    start: Start = 0,
    limit: Limit = 40,
) -> HeadsAnswer:
    """List heads with kind and scores, sorted by a score. `odd` sorts the most unusual first."""
    known = head_scores(bench.atlas)
    names = [info.name for info in known.measures]
    shown = [name for name in USUAL if name in names] if scores is None else scores
    for name in [*shown, *([] if sort in _OTHERS else [sort])]:
        if name not in names:
            raise PickError(f"no score is named {name[:60]!r}; there is {', '.join(names)}")
    if sort not in (*_OTHERS, *shown):
        shown = [*shown, sort]
    lines = [_line(known, place, shown, names) for place in _order(known, sort, names)]
    kept = [
        line for line in lines
        if kind in (None, line.kind) and (layer is None or _layer(line.head) == layer)
    ]  # fmt: skip
    rows, more = page_of(kept, start, limit, "heads")
    chance = {name: _mean(known.chance[names.index(name)]) for name in shown}
    return HeadsAnswer(
        total=len(kept), heads=rows, chance=chance, all_scores=names, note=known.note, more=more
    )


def _order(known: HeadScores, sort: str, names: list[str]) -> list[int]:
    """Return the places of heads in the order that was asked for; those without it are last."""
    places = range(len(known.heads))
    if sort == "head":
        return list(places)
    if sort == "kind":
        return sorted(places, key=lambda place: int(known.kind[place]))
    values = known.odd if sort == "odd" else known.value[names.index(sort)]
    return [int(place) for place in np.argsort(np.nan_to_num(-values, nan=np.inf), kind="stable")]


def _line(known: HeadScores, place: int, shown: list[str], names: list[str]) -> HeadLine:
    number = int(known.kind[place])
    return HeadLine(
        head=known.heads[place], kind=known.kinds[number] if number < len(known.kinds) else None,
        margin=small(known.margin[place]), agree=small(known.agree[place]),
        scores={name: small(known.value[names.index(name), place]) for name in shown},
    )  # fmt: skip


def _layer(head: str) -> int:
    return int(head.rpartition("L")[2].partition("H")[0])


def _mean(chance: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> float | None:
    finite = chance[np.isfinite(chance)]
    return small(finite.mean()) if finite.size else None
