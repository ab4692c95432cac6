"""Where does a token stand in all inputs, and where does a head look from there?"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from attention_atlas.names.errors import InputError
from attention_atlas.names.token_text import MARKS
from attention_atlas.page.agents.answer import Answer, page_of, small
from attention_atlas.page.agents.arguments import Limit, Start
from attention_atlas.page.agents.bench import AgentBench

_AROUND = 4  # tokens before and after
_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "whole": lambda token, wanted: token == wanted,
    "start": lambda token, wanted: token.startswith(wanted),
    "inside": lambda token, wanted: wanted in token,
}


class FoundToken(BaseModel):
    """A token that was found; with a head, what it looks at most."""

    input: int
    position: int
    token: str
    context: str
    looks_at: int | None = None
    looks_at_token: str | None = None
    weight: float | None = None


class SearchAnswer(Answer):
    """Tokens that were found."""

    total: int
    inputs: int
    found: list[FoundToken]
    head: str | None = None


def search(
    bench: AgentBench,
    text: Annotated[str, Field(min_length=1, max_length=100, description="What to look for.")],
    match: Annotated[
        Literal["whole", "start", "inside"], Field(description="Which part of a token it is.")
    ] = "whole",
    head: Annotated[
        str | None, Field(max_length=80, description="Give what this head looks at from there.")
    ] = None,
    start: Start = 0,
    limit: Limit = 25,
) -> SearchAnswer:
    """Find tokens in all inputs, in any case; with a head, what each of them looks at most."""
    wanted = text.strip().strip(MARKS).casefold()
    if not wanted:
        raise InputError("there is nothing to look for; give letters, a number or a mark")
    texts = [each.strip(MARKS).casefold() for each in bench.all_texts]
    frame = bench.atlas.base.tokens()
    hits = frame[np.array([_MATCHES[match](each, wanted) for each in texts], np.bool_)]
    stream = None if head is None else bench.find_head(head)[2].queries
    if stream is not None:
        hits = hits[hits["stream"] == stream]
    rows, more = page_of(range(len(hits)), start, limit, "tokens")
    found = [_found(bench, hits.iloc[row], head) for row in rows]
    return SearchAnswer(
        total=len(hits), inputs=int(hits["input"].nunique()), found=found, head=head, more=more
    )


def _found(bench: AgentBench, row: "pd.Series[Any]", head: str | None) -> FoundToken:
    number, position = int(row["input"]), int(row["position"])
    texts = bench.texts(number, str(row["stream"]))
    around = texts[max(0, position - _AROUND) : position + _AROUND + 1]
    found = FoundToken(
        input=number, position=position, token=texts[position], context="".join(around)
    )
    if head is None:
        return found
    _, _, layer = bench.find_head(head)
    weights = bench.atlas.weights(number, head, [position])[0]  # (M,)
    key = int(weights.argmax())
    told = {"looks_at": key, "looks_at_token": bench.texts(number, layer.keys)[key]}
    return found.model_copy(update={**told, "weight": small(weights[key])})
