"""Which inputs are there, and which tokens has one of them?"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from attention_atlas.page.agents.answer import Answer, cut, page_of
from attention_atlas.page.agents.arguments import InputNumber, Limit, Start
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.about import records
from attention_atlas.page.answers.find import check_input, listed_input

_TEXT, _LONG = 160, 4000  # characters of a text in the list, and alone
_OURS = {"input", "kind", "text", "second", "source", "boundary", "prompt", "images"}


class InputRow(BaseModel):
    """One input: its kind and text, and the columns that its owner gave."""

    input: int
    kind: str
    text: str
    second: str | None = None
    columns: dict[str, str] = Field(default_factory=dict)


class InputsAnswer(Answer):
    """Inputs, or the tokens of one input; token i of the list has position `first_token` + i."""

    total: int
    inputs: list[InputRow]
    stream: str | None = None
    streams: list[str] = Field(default_factory=list)
    token_count: int | None = None
    first_token: int | None = None
    tokens: list[str] = Field(default_factory=list)


def inputs(
    bench: AgentBench,
    input: Annotated[InputNumber | None, Field(description="Give the tokens of this one.")] = None,
    containing: Annotated[
        str, Field(max_length=200, description="Only texts that contain this, in any case.")
    ] = "",
    stream: Annotated[
        str | None, Field(max_length=80, description="Of a model with several: which tokens.")
    ] = None,
    start: Start = 0,
    limit: Limit = 20,
) -> InputsAnswer:
    """List the inputs of the atlas; with `input`, the text and all tokens of one."""
    if input is not None:
        return _one(bench, input, stream, start)
    frame = bench.atlas.inputs()
    if containing:
        texts = frame["text"].fillna("").astype(str) + "\n" + frame["second"].fillna("").astype(str)
        frame = frame[texts.str.contains(containing, case=False, regex=False)]
    lines = [_line(row, _TEXT) for row in records(frame.iloc[start : start + limit])]
    more = page_of(range(len(frame)), start, limit, "inputs")[1]
    return InputsAnswer(total=len(frame), inputs=lines, more=more)


def _one(bench: AgentBench, number: int, stream: str | None, start: int) -> InputsAnswer:
    i = check_input(bench.atlas, number)
    place = listed_input(bench.atlas, i)
    row = records(bench.atlas.inputs().iloc[place : place + 1])[0]
    streams = [str(name) for name in bench.atlas.tokens(i)["stream"].unique()]
    chosen = stream or streams[0]
    tokens = bench.texts(i, chosen)
    shown, more = page_of(tokens, start, 1000, "tokens")
    return InputsAnswer(
        total=1, inputs=[_line({**row, "input": i}, _LONG)], stream=chosen, streams=streams,
        token_count=len(tokens), first_token=start, tokens=shown, more=more,
    )  # fmt: skip


def _line(row: dict[str, Any], most: int) -> InputRow:
    second = row.get("second")
    own = {
        cut(str(name), 40): cut(str(value), 60)
        for name, value in row.items()
        if name not in _OURS and value is not None and not str(name).endswith("_sums")
    }
    return InputRow(
        input=int(row["input"]), kind=str(row["kind"]),
        text=cut(row.get("text") or row.get("source") or "", most),
        second=None if not second else cut(str(second), most),
        columns=dict(list(own.items())[:6]),
    )  # fmt: skip
