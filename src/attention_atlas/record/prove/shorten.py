"""On how much of its inputs is a model tried?

A trial needs whole N × N maps, so long texts are cut to their first tokens: which ways work, which
masks there are and what padding does shows there as well. What is beyond the cut is proven in the
captured run itself, by rows drawn at random. Pictures and sounds cannot be cut.

Models that are not reached by the first way may run other code for short texts (BigBird's blocks do
not exist there), and compute N × N maps anyway; of them more is tried.
"""

from dataclasses import replace

from torch import Tensor

from attention_atlas.models.encode import Encoded
from attention_atlas.models.load import Loaded
from attention_atlas.record.prove.receipt import Trial, try_ways
from attention_atlas.record.watch.ways import WAYS
from attention_atlas.store.manifest import Rows

SHORT, LONG = 64, 1024  # tokens


def try_shortened(loaded: Loaded, items: list[Encoded], seed: int = 0) -> Trial:
    """Try a model on the first tokens of a few inputs; return the trial, which says what is cut."""
    short = shortened(items, SHORT)
    trial = try_ways(loaded, short, seed)
    longer = shortened(items, LONG)
    if _lengths(short) != _lengths(longer) and (trial.way != WAYS[0] or not trial.receipt.exact):
        short, trial = longer, try_ways(loaded, longer, seed)
    beyond = sum(_beyond(trial, *pair) for pair in zip(short, items, strict=True))
    rows = trial.receipt.tried
    assert rows is not None
    return replace(
        trial,
        cut=tuple(after is not before for after, before in zip(short, items, strict=True)),
        receipt=replace(trial.receipt, tried=rows + Rows(0, beyond)),
    )


def _beyond(trial: Trial, short: Encoded, whole: Encoded) -> int:
    """Count the rows of an input, over all layers, that were cut off."""
    return sum(
        len(whole.streams[ends.queries]) - len(short.streams[ends.queries])
        for ends in trial.ends.values()
        if ends.queries in whole.streams
    )


def shortened(items: list[Encoded], most: int) -> list[Encoded]:
    """Return inputs of at most so many tokens; inputs of different length stay different."""
    short = [cut(item, most) for item in items]
    lengths = _lengths(items)
    if len(set(lengths)) > 1 and len(set(_lengths(short))) == 1:
        least = min(range(len(items)), key=lambda index: lengths[index])
        short[least] = cut(items[least], most * 3 // 4)
    return short


def cut(item: Encoded, most: int) -> Encoded:
    """Return the first tokens of each text of an input; the input itself if it cannot be cut."""
    if not item.streams or item.shown is not None or item.heard is not None:
        return item
    sides = {side: item.tensors.get(f"{side}input_ids") for side in ("", "decoder_")}
    if not all(_is_text(name, tensor, sides) for name, tensor in item.tensors.items()):
        return item
    if all(ids is None or ids.shape[1] <= most for ids in sides.values()):
        return item
    tensors = {name: tensor[:, :most].clone() for name, tensor in item.tensors.items()}
    streams = {}
    for stream, tokens in item.streams.items():
        mask = tensors.get(f"{'decoder_' if stream == 'decoder' else ''}attention_mask")
        count = min(most, len(tokens)) if mask is None else int(mask[0].sum())
        if not count:
            return item
        streams[stream] = tokens.at(range(count))
    return replace(item, tensors=tensors, streams=streams)


def _is_text(name: str, tensor: Tensor, sides: dict[str, Tensor | None]) -> bool:
    """Tell whether a tensor has one entry per token of its side: ids, a mask, kinds of tokens."""
    ids = sides["decoder_" if name.startswith("decoder_") else ""]
    return ids is not None and tensor.shape == ids.shape and len(tensor) == 1


def _lengths(items: list[Encoded]) -> list[tuple[int, ...]]:
    return [tuple(len(tokens) for tokens in item.streams.values()) for item in items]
