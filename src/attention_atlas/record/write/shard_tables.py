"""Which tokens does each input of a shard have, and what do its tables say?"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from attention_atlas.models.encode import Encoded, Tokens
from attention_atlas.models.inputs import Input
from attention_atlas.models.sound import frame_times
from attention_atlas.record.places.picture_columns import add_pictures
from attention_atlas.record.places.streams import made_tokens, sizes, token_columns
from attention_atlas.record.places.survey import Survey
from attention_atlas.record.watch.layers import LayerCalls, modality
from attention_atlas.record.write.batches import Numbered
from attention_atlas.record.write.pictures import picture_names
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.tables import input_row, input_table, token_table

Columns = dict[str, Any]  # name → one value per token


class MadeStream(NamedTuple):
    """A stream known from attention alone: its module and length; `first` of its tower or not."""

    path: str
    module: str
    n: int
    first: bool


def made_streams(layers: list[LayerCalls], plan: CapturePlan, inputs: int) -> dict[str, MadeStream]:
    """Return the streams of some layers' queries and keys in a batch of so many inputs."""
    streams: dict[str, MadeStream] = {}
    begun: set[str] = set()
    for layer in layers:
        path, cross = layer.tower_key
        first = path not in begun and not cross
        begun.add(path)
        ends = plan.ends[layer.tower_key, layer.number]
        for stream, n in zip((ends.queries, ends.keys), sizes(layer, inputs), strict=True):
            streams.setdefault(stream, MadeStream(path, layer.first.module, n, first))
    return streams


@dataclass
class ShardRows:
    """The tokens and prompts of a shard's inputs, by number."""

    tokens: dict[int, dict[str, Columns]] = field(default_factory=dict)
    prompts: dict[int, int] = field(default_factory=dict)  # tokens that were not generated


def input_tokens(
    survey: Survey,
    known: dict[str, Tokens],
    made: dict[str, MadeStream],
    item: Encoded,
    given: Input,
) -> dict[str, Columns]:
    """Return the columns of one input's tokens, stream by stream."""
    streams = {stream: token_columns(tokens) for stream, tokens in known.items()}
    for stream, seen in made.items():
        if stream not in streams:
            seats = survey.seats(seen.path, seen.module, seen.n, seen.first, item)
            streams[stream] = made_tokens(seen.n, seats, _times(survey, seen, item))
    add_pictures(survey.loaded.model, streams, item, given)
    return streams


def _times(survey: Survey, seen: MadeStream, item: Encoded) -> list[str] | None:
    """Return the times of an audio tower's frames, or None for other towers."""
    model = survey.loaded.model
    if item.heard is None or modality(model, seen.path) != "audio":
        return None
    return frame_times(model, item.heard, seen.n)


def tables(
    items: list[Numbered], given: dict[int, Input], rows: ShardRows, columns: tuple[str, ...]
) -> dict[str, pa.Table]:
    """Return the tables `inputs` and `tokens` of a shard."""
    input_rows = []
    for number, item in items:
        text = item.streams.get("text")
        input_rows.append(
            input_row(
                number, given[number],
                boundary=text.segment.index(1) if text and 1 in text.segment else -1,
                prompt=rows.prompts.get(number, -1), truncated=item.truncated,
                images=picture_names(number, given[number]),
            )
        )  # fmt: skip
    streams = [
        (number, stream, tokens)
        for number, _ in items
        for stream, tokens in rows.tokens[number].items()
    ]
    return {"inputs": input_table(input_rows, columns), "tokens": token_table(streams)}
