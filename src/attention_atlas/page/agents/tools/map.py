"""Where do a head's queries and keys lie on a map, and how far can the map be trusted?"""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from attention_atlas.names.errors import PickError
from attention_atlas.page.agents.answer import Answer, small
from attention_atlas.page.agents.arguments import InputNumber, Limit, Position, Side
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.find import check_input, count_tokens
from attention_atlas.page.answers.maps import find_group, map_infos
from attention_atlas.store.manifest import Layer
from attention_atlas.store.maps import SIDES, Map, MapHeads

_FIGURE = "map.strongest"  # how often the strongest visible key is among the nearest
READING = (
    "map.strongest: share of queries whose strongest visible key is among the 3 nearest keys; "
    "chance is what a random map gives; pca.* and shuffled.* are other maps of the same head."
)


class MapLine(BaseModel):
    """A map of the atlas."""

    name: str
    method: str
    dims: int
    heads: int
    points: int


class MapPoint(BaseModel):
    """A point near the one that was asked for."""

    side: str
    input: int
    position: int
    token: str
    distance: float | None


class MapAnswer(Answer):
    """The maps there are; of one head, what its map keeps; of one token, what is near it."""

    maps: list[MapLine]
    map: str | None = None
    head: str | None = None
    keeps: dict[str, float | None] = Field(default_factory=dict)
    best_heads: dict[str, float | None] = Field(default_factory=dict)
    worst_heads: dict[str, float | None] = Field(default_factory=dict)
    place: list[float | None] = Field(default_factory=list)
    near: list[MapPoint] = Field(default_factory=list)
    note: str = ""


def map_tool(
    bench: AgentBench,
    map: Annotated[str | None, Field(max_length=60, description="As in umap-2d.")] = None,
    head: Annotated[str | None, Field(max_length=80, description="A head, as in L5H1.")] = None,
    input: InputNumber = 0,
    token: Position = None,
    side: Side = "query",
    limit: Limit = 12,
) -> MapAnswer:
    """Give the maps; with a head, what its map keeps; with a token too, the points near it."""
    infos, notes = map_infos(bench.atlas)
    lines = [
        MapLine(
            name=info.name, method=info.method, dims=info.dims,
            heads=sum(len(group.heads) for group in info.groups),
            points=sum(group.queries + group.keys for group in info.groups),
        )
        for info in infos
    ]  # fmt: skip
    if not infos and map is None:
        note = f"there are no maps yet; run: attention-atlas layout {bench.name}"
        return MapAnswer(maps=[], note=note, more=notes)
    info = next((info for info in infos if map in (None, info.name)), None)
    if info is None:
        known = ", ".join(line.name for line in lines) or "none yet"
        raise PickError(f"no map is named {str(map)[:60]!r}; there is {known}")
    answer = MapAnswer(maps=lines, map=info.name, note=READING, more=notes)
    groups = [find_group(bench.atlas, info.name, group.name)[1:] for group in info.groups]
    if head is None:
        return answer.model_copy(update=_trusted(groups))
    name, layer = _named(bench, head)
    found = next(((layout, group) for layout, group in groups if name in group.heads), None)
    if found is None:
        raise PickError(f"the map {info.name} has no head {name}; it is not laid out")
    layout, group = found
    row = group.heads.index(name)
    keeps = {
        figure: small(value)
        for figure, value in zip(layout.figures, group.fidelity[row], strict=True)
    }
    update: dict[str, object] = {"head": name, "keeps": keeps}
    if token is None:
        more = ["token=<position> gives the points that are near it"]
        return answer.model_copy(update={**update, "more": [*notes, *more]})
    place = _place(bench, layer, group, check_input(bench.atlas, input), token, side)
    return answer.model_copy(update={**update, **_near(bench, group, row, place, limit)})


def _named(bench: AgentBench, head: str) -> tuple[str, Layer]:
    found, _, layer = bench.find_head(head)
    several = len(bench.atlas.towers) > 1
    return (str(found) if several else str(found).rpartition(".")[2]), layer


def _trusted(groups: list[tuple[Map, MapHeads]]) -> dict[str, object]:
    """Return the heads whose maps keep most and least."""
    kept: dict[str, float] = {}
    for layout, group in groups:
        if _FIGURE in layout.figures:
            column = group.fidelity[:, layout.figures.index(_FIGURE)]
            kept |= {name: float(value) for name, value in zip(group.heads, column, strict=True)
                     if np.isfinite(value)}  # fmt: skip
    order = sorted(kept, key=lambda name: (-kept[name], name))
    return {
        "best_heads": {name: small(kept[name]) for name in order[:5]},
        "worst_heads": {name: small(kept[name]) for name in order[-5:][::-1]},
        "more": ["head=<name> gives what the map of that head keeps"],
    }


def _place(
    bench: AgentBench, layer: Layer, group: MapHeads, input: int, token: int, side: str
) -> int:  # fmt: skip
    """Return the row of a token among the points of a group."""
    stream = layer.queries if side == "query" else layer.keys
    if token >= count_tokens(bench.atlas, input, stream):
        count = count_tokens(bench.atlas, input, stream)
        raise PickError(f"input {input} has no {side} {token}; it has 0 to {count - 1}")
    number = int(bench.atlas.tokens(input, stream)["token"].iloc[token])
    tokens = group.query_tokens if side == "query" else group.key_tokens
    rows = np.flatnonzero(tokens == number)
    if not len(rows):
        raise PickError(
            f"token {token} of input {input} is not among the {len(tokens)} tokens of this map"
        )
    return int(rows[0]) + (0 if side == "query" else len(group.query_tokens))


def _near(
    bench: AgentBench, group: MapHeads, row: int, place: int, limit: int
) -> dict[str, object]:
    places = group.unpacked()[row]  # (N + M, dims)
    away = np.linalg.norm(places - places[place], axis=1)
    away[place] = -1
    nearest = np.argsort(away, kind="stable")[1 : limit + 1]
    tokens = np.concatenate([group.query_tokens, group.key_tokens])
    frame, texts = bench.atlas.base.tokens(), bench.all_texts
    near = [
        MapPoint(
            side=SIDES[int(point >= len(group.query_tokens))],
            input=int(frame["input"].iloc[tokens[point]]),
            position=int(frame["position"].iloc[tokens[point]]),
            token=texts[tokens[point]], distance=small(away[point]),
        )
        for point in nearest
    ]  # fmt: skip
    more = [f"{len(places) - 1 - len(near)} points are farther; ask with a larger limit"]
    return {"place": [small(value) for value in places[place]], "near": near, "more": more}
