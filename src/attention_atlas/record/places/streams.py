"""Which tokens look in a layer, and which are looked at?

A stream is one sequence of tokens of an input: its text, its decoder's text, its patches. Text
streams come from the tokenizer. If a tower reads something else (patches, frames, pooled queries),
the stream is named after the tower and its tokens are made here.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from attention_atlas.models.encode import Tokens
from attention_atlas.record.places.patch_seats import Floats, Ints, Seats, windows_of
from attention_atlas.record.watch.layers import LayerCalls, TowerKey, modality, stream_side
from attention_atlas.record.watch.pieces import CannotSplit, Places, places


@dataclass(frozen=True)
class Ends:
    """The streams of a layer's queries and keys."""

    queries: str
    keys: str


def ends_of(
    model: nn.Module,
    layers: list[LayerCalls],
    names: dict[TowerKey, str],
    real: dict[str, Tensor],  # known streams: (B, N) bool
    batch: int,
) -> dict[tuple[TowerKey, int], Ends]:
    """Return the ends of every layer."""
    lengths = {stream: mask.shape[1] for stream, mask in real.items()}
    ends: dict[tuple[TowerKey, int], Ends] = {}
    for layer in layers:
        n, m = sizes(layer, batch)
        name = names.get((layer.tower_key[0], False), names[layer.tower_key])
        order = _order(model, layer)
        queries = _known(model, layer.tower_key, lengths, n) or _made(f"{name}{order}", n, lengths)
        lengths.setdefault(queries, n)
        if not layer.tower_key[1] and n == m:
            keys = queries
        else:
            key_name = f"{names[layer.tower_key]}-keys{order}"
            keys = _looked_at(layer, lengths, m) or _made(key_name, m, lengths)
        lengths.setdefault(keys, m)
        ends[layer.tower_key, layer.number] = Ends(queries, keys)
    return ends


def sizes(layer: LayerCalls, batch: int) -> tuple[int, int]:
    """Return how many queries and keys one input has, over all its parts."""
    calls = layer.steps[0]
    parts = [len(call.query) // batch for call in calls]
    return (
        sum(call.query.shape[2] * part for call, part in zip(calls, parts, strict=True)),
        sum(call.key.shape[2] * part for call, part in zip(calls, parts, strict=True)),
    )


def _known(model: nn.Module, group: TowerKey, lengths: dict[str, int], n: int) -> str | None:
    path, cross = group
    if "decoder" in lengths:
        side = "decoder" if cross else stream_side(path)
    else:
        side = "text" if modality(model, path) == "text" else ""
    return side if lengths.get(side) == n else None


def _looked_at(layer: LayerCalls, lengths: dict[str, int], m: int) -> str | None:
    """Return the stream that cross-attention reads: the encoder's, else one of that length."""
    if not layer.tower_key[1]:
        return None
    if lengths.get("encoder") == m:
        return "encoder"
    return next((s for s, n in reversed(lengths.items()) if n == m and s != "decoder"), None)


def _made(name: str, n: int, lengths: dict[str, int]) -> str:
    return name if lengths.get(name, n) == n else f"{name}@{n}"


def _order(model: nn.Module, layer: LayerCalls) -> str:
    """Return an ending for streams whose windows give the patches another order, else ""."""
    if modality(model, layer.tower_key[0]) == "text":
        return ""
    windows = windows_of(model, layer.tower_key[0], layer.first.module)
    if windows is None:
        return ""
    return "-shifted" if windows.shift else "" if windows.side else "-global"


def real_ends(ends: Ends, real: dict[str, Tensor], row: int) -> tuple[Places, Places]:
    """Return which places of an input's queries and keys are not padding."""

    def side(stream: str) -> Places:
        return slice(None) if stream not in real else places(real[stream][row])

    return side(ends.queries), side(ends.keys)


def refuse_hidden_pads(
    model: Any,
    layers: list[LayerCalls],
    ends: dict[tuple[TowerKey, int], Ends],
    real: dict[str, Tensor],
) -> None:
    """Raise CannotSplit if a padded text is pooled or joined with pictures.

    We cannot tell the places of such a text from padding, so its inputs run one at a time.
    """
    if all(bool(mask.all()) for mask in real.values()):
        return
    for layer in layers:
        layer_ends = ends[layer.tower_key, layer.number]
        known = layer_ends.queries in real and layer_ends.keys in real
        if not known and modality(model, layer.tower_key[0]) == "text":
            raise CannotSplit


def in_odd_parts(model: Any, layer: LayerCalls, ends: Ends, real: dict[str, Tensor]) -> bool:
    """Tell whether a text runs in several softmaxes that are not successive tokens.

    Windows together are the whole picture; landmarks, hashes and gathered blocks are not.
    """
    calls = layer.steps[0]
    several = len(calls) > 1 or len(calls[0].query) > len(next(iter(real.values()), calls[0].query))
    return several and ends.queries not in real and modality(model, layer.tower_key[0]) == "text"


def made_tokens(n: int, seats: Seats | None, times: list[str] | None = None) -> dict[str, Any]:
    """Return the columns of tokens without a tokenizer: patches, frames of sound, or numbers."""
    none = [-1] * n
    if seats is None:
        text = times or [str(index) for index in range(n)]
        return token_columns(Tokens(text, none, [False] * n, none, none, none, none))
    tokens = Tokens(seats.names, none, seats.special, none, none, none, none)
    return token_columns(tokens) | {
        "row": seats.row.tolist(),
        "column": seats.column.tolist(),
        **place_columns(seats.image, seats.box),
    }


def token_columns(tokens: Tokens) -> dict[str, Any]:
    """Return tokens as columns of the table of tokens."""
    none = [-1] * len(tokens)
    return {
        "text": tokens.text,
        "id": tokens.id,
        "special": tokens.special,
        "start": tokens.start,
        "end": tokens.end,
        "segment": tokens.segment,
        "word": tokens.word,
        "row": none,
        "column": none,
    }


def place_columns(image: Ints, box: Floats) -> dict[str, Any]:
    """Return the picture and the box of each token as columns of the table of tokens."""
    sides = ("left", "top", "right", "bottom")
    return {"image": image.tolist()} | {side: box[:, i].tolist() for i, side in enumerate(sides)}
