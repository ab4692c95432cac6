"""Which inputs run together, and which go into one shard?"""

from itertools import pairwise
from typing import Any

from attention_atlas.models.encode import Encoded
from attention_atlas.names.errors import AtlasError
from attention_atlas.record.places.streams import sizes
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.write.shard_tensors import Shard

Numbered = tuple[int, Encoded]  # an input's number in the atlas, and the input


def batches(items: list[Numbered], size: int, worth: int) -> list[list[Numbered]]:
    """Inputs of like length together, at most `size`, where the least is spent on padding.

    worth  places of padding that one batch more may save at the least
    """

    def length(one: Numbered) -> int:
        return sum(len(tokens) for tokens in one[1].streams.values())

    ordered = sorted(items, key=length)
    lengths = [length(one) for one in ordered]
    # least[e]: what the first e inputs cost at best, and where their last batch starts
    least: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(ordered) + 1):
        starts = range(max(0, end - size), end)
        least.append(
            min((least[at][0] + (end - at) * lengths[end - 1] + worth, at) for at in starts)
        )
    cuts = [len(ordered)]
    while cuts[-1]:
        cuts.append(least[cuts[-1]][1])
    return [ordered[start:end] for end, start in pairwise(cuts)][::-1]


def bytes_of(item: Encoded, plan: Trial) -> int:
    """About how much one input will take in a shard."""
    total = 0
    for layer in plan.layers:
        call, ends = layer.first, plan.ends[layer.tower_key, layer.number]
        n, k = sizes(layer, len(call.query) if not plan.alone else 1)
        n = len(item.streams[ends.queries]) if ends.queries in item.streams else n
        k = len(item.streams[ends.keys]) if ends.keys in item.streams else k
        _, heads, _, width = call.query.shape
        groups, value_width = call.key.shape[1], call.value.shape[-1]
        total += 2 * (n * heads * width + k * groups * (width + value_width))
        if not width:
            total += 4 * heads * n * k
    return total


def refuse_lost_tokens(
    number: int, mine: dict[str, dict[str, Any]], shard: Shard, plan: Trial
) -> None:
    """Every query and key must be a token of the atlas, or something was lost on the way."""
    by_name = {(plan.names[g], n): ends for (g, n), ends in plan.ends.items()}
    for name, by_input in shard.pieces.items():
        if number not in by_input:
            continue
        ends = by_name[name]
        for stream, count in (
            (ends.queries, sum(p.query.shape[1] for p in by_input[number])),
            (ends.keys, sum(p.key.shape[1] for p in by_input[number])),
        ):
            if len(mine[stream]["text"]) != count:
                raise AtlasError(
                    f"layer {name[1]} of {name[0]} has {count} places for the "
                    f"{len(mine[stream]['text'])} tokens of {stream} in input {number}; "
                    "this model pads or pools in a way that cannot be shown yet"
                )
