"""What is known of one head?"""

from typing import Annotated

from pydantic import BaseModel, Field

from attention_atlas.measure.card import Card, card
from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.page.agents.answer import Answer, cut, small
from attention_atlas.page.agents.arguments import HeadName
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.heads import measured, similar_heads

_NEAREST, _TELLING = 5, 8
_SENTENCE = 200  # characters


class ScoreLine(BaseModel):
    """A score of a head with its 95 % interval, what chance gives, and its rank."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    rank: int
    of: int


class MeasureWords(BaseModel):
    """What a score means."""

    name: str
    title: str
    formula: str
    source: str
    chance_means: str


class HeadAnswer(Answer):
    """All that is known of one head."""

    head: str
    kind: str | None
    kind_detail: str
    margin: float | None
    agree: float | None
    sink: float | None
    kind_without_sink: str | None
    scores: list[ScoreLine]
    explained: MeasureWords | None = None
    unusual: list[str]
    similar: dict[str, float | None]
    telling_inputs: list[int]
    relations: list[str]


def head(
    bench: AgentBench,
    head: HeadName,
    explain: Annotated[
        str | None, Field(max_length=60, description="A score whose formula and source to give.")
    ] = None,
) -> HeadAnswer:
    """Give all that is known of one head: kind, every score, similar heads, telling inputs."""
    found, _, _ = bench.find_head(head)
    name = str(found) if len(bench.atlas.towers) > 1 else str(found).rpartition(".")[2]
    atlas, scores = measured(bench.atlas)
    try:
        similar = similar_heads(atlas)
    except AtlasError:  # the answer can do without similar heads
        similar = None
    known = card(atlas, scores, name, similar)
    kind = known.kind
    without = kind.get("without_sink")
    return HeadAnswer(
        head=known.head, kind=_text(kind.get("kind")), kind_detail=_text(kind.get("detail")) or "",
        margin=small(kind.get("margin", "nan")), agree=small(kind.get("agree", "nan")),
        sink=small(kind.get("sink", "nan")), kind_without_sink=_text(without),
        scores=[_score(row) for row in known.scores], explained=_explained(known, explain),
        unusual=[cut(sentence, _SENTENCE) for sentence in known.anomalies],
        similar={name: small(away) for name, away in known.nearest[:_NEAREST]},
        telling_inputs=known.telling[:_TELLING],
        relations=[
            f"{row['relation']} ({row['way']}): right {row['right']:.2f}, best fixed offset "
            f"{row['baseline']:.2f}, {int(row['words'])} words"
            for row in known.relations
        ],
        more=["explain=<name of a score> gives its formula, source and what chance means"]
        if explain is None else [],
    )  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _score(row: dict[str, object]) -> ScoreLine:
    numbers = {name: small(row.get(name, "nan")) for name in ("value", "low", "high", "chance")}
    return ScoreLine(name=str(row["measure"]), rank=int(str(row["rank"])), of=int(str(row["of"])),
                     **numbers)  # fmt: skip


def _explained(known: Card, name: str | None) -> MeasureWords | None:
    if name is None:
        return None
    row = next((row for row in known.scores if row["measure"] == name), None)
    if row is None:
        names = ", ".join(str(row["measure"]) for row in known.scores)
        raise PickError(f"no score is named {name[:60]!r}; there is {names}")
    words = {field: str(row[field]) for field in ("title", "formula", "source", "chance_means")}
    return MeasureWords(name=name, **words)
