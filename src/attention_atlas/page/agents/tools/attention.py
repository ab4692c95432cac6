"""Where does a head look? The strongest links of an input, or the row of one token."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from attention_atlas.names.errors import PickError
from attention_atlas.names.progress import bar
from attention_atlas.page.agents.answer import Answer, small
from attention_atlas.page.agents.arguments import MOST_NUMBER, HeadName, InputNumber, Position, Side
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.find import check_input, count_tokens, is_long
from attention_atlas.page.answers.moved import view_as
from attention_atlas.store.manifest import Layer, Tower

What = Literal["weights", "moved", "contribution"]
MOST_WEIGHTS = 100_000_000  # of one head and input that are looked through
_BLOCK = 1_000_000  # weights in memory
Floats = npt.NDArray[np.float32]


class Link(BaseModel):
    """How much a query looks at a key."""

    query: int
    query_token: str
    key: int
    key_token: str
    weight: float | None


class AttentionAnswer(Answer):
    """Links of one head, the strongest first; `rest` is the sum of those that are not listed."""

    head: str
    input: int
    what: str
    of: str
    links: list[Link]
    listed: float | None
    rest: float | None


def attention(
    bench: AgentBench,
    head: HeadName,
    input: InputNumber = 0,
    token: Position = None,
    side: Side = "query",
    what: Annotated[
        What, Field(description="Weights, or what is moved, or signed shares of the output.")
    ] = "weights",
    skip: Annotated[
        list[Annotated[int, Field(ge=0, le=MOST_NUMBER)]] | None,
        Field(max_length=200, description="Positions of keys to leave out, such as [0]."),
    ] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="How many links.")] = 20,
) -> AttentionAnswer:
    """Give the strongest links of a head in an input, or those of one token."""
    i = check_input(bench.atlas, input)
    place, tower, layer = bench.find_head(head)
    subject = view_as(bench.atlas, what, "-")
    reader = _HeadReader(subject, i, tower, layer, place.head)
    n, m = (count_tokens(bench.atlas, i, stream) for stream in (layer.queries, layer.keys))
    left_out = [key for key in skip or () if key < m]
    if token is None:
        found = _strongest(reader, n, m, left_out, limit)
    else:
        found = _of_token(reader, n, m, token, side, left_out, limit)
    queries, keys, weights, total = found
    sides = bench.texts(i, layer.queries), bench.texts(i, layer.keys)
    links = [
        Link(query=int(q), query_token=sides[0][q], key=int(k), key_token=sides[1][k],
             weight=small(weight))
        for q, k, weight in zip(queries, keys, weights, strict=True)
    ]  # fmt: skip
    others = (n * m if token is None else m if side == "query" else n) - len(links)
    return AttentionAnswer(
        head=str(place), input=i, what=what, of=_of(token, side), links=links,
        listed=small(weights.sum()), rest=small(total - weights.sum()),
        more=[f"{others} weaker links are not listed; ask with a larger limit or for one token"]
        if others > 0 else [],
    )  # fmt: skip


def _of(token: int | None, side: str) -> str:
    if token is None:
        return "the whole input"
    return f"what token {token} looks at" if side == "query" else f"what looks at token {token}"


class _HeadReader:
    """Reads the numbers of one head in one input."""

    def __init__(self, subject: Any, input: int, tower: Tower, layer: Layer, head: int):
        self.subject, self.place = subject, (input, layer.layer, tower.name)
        self.head, self.long = head, is_long(subject, input, tower)

    def rows(self, rows: Sequence[int], columns: range | None = None) -> Floats:
        """Return the numbers (R, C) of some rows and columns."""
        if self.long and columns is not None:  # other columns are not computed
            window = self.subject.window(*self.place, rows, columns, [self.head])
            return np.array(window[0])
        return np.array(self.subject.rows(*self.place, [self.head], rows, columns)[0])


Found = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats, float]


def _of_token(
    reader: _HeadReader, n: int, m: int, token: int, side: str, skip: list[int], limit: int
) -> Found:
    count = n if side == "query" else m
    if token >= count:
        raise PickError(f"this input has no {side} {token}; it has 0 to {count - 1}")
    if side == "query":
        values = reader.rows([token])[0]  # (M,)
        values[skip] = 0
    else:
        values = reader.rows(range(n), range(token, token + 1))[:, 0]  # (N,)
    best = _best(values, limit)
    same = np.full(len(best), token)
    ends = (same, best) if side == "query" else (best, same)
    return *ends, values[best], float(values.sum())


def _strongest(reader: _HeadReader, n: int, m: int, skip: list[int], limit: int) -> Found:
    """Find the strongest links of all rows; memory holds some rows at a time."""
    if n * m > MOST_WEIGHTS:
        raise PickError(
            f"this input has {n} × {m} weights, too many to look through at once; ask for one token"
        )
    step = max(1, _BLOCK // max(1, m))
    places, values, total = np.empty(0, np.int64), np.empty(0, np.float32), 0.0
    with bar("attention", n, show=False) as tick:
        for first in range(0, n, step):
            block = reader.rows(range(first, min(n, first + step)))  # (R, M)
            block[:, skip] = 0
            total += float(block.sum())
            flat = block.ravel()
            best = _best(flat, limit)
            places = np.concatenate([places, best + first * m])
            values = np.concatenate([values, flat[best]])
            kept = _best(values, limit)
            places, values = places[kept], values[kept]
            tick(min(n, first + step))
    return *np.divmod(places, m), values, total


def _best(values: Floats, limit: int) -> npt.NDArray[np.intp]:
    """Return the places of the numbers that are farthest from zero; equal ones by their place."""
    return np.argsort(-np.abs(values), kind="stable")[:limit]
