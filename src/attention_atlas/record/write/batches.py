"""Which inputs run together?"""

from itertools import pairwise

from attention_atlas.models.encode import Encoded

Numbered = tuple[int, Encoded]  # an input's number in the atlas, and the input
# Places of padding that take as long as one batch more, in which a CPU reads all weights again and
# a GPU waits for its kernels: 30 was measured with 85 million parameters on two cores.
WORTH = {"cpu": 30, "gpu": 10_000}


def batches(items: list[Numbered], size: int, worth: int) -> list[list[Numbered]]:
    """Put inputs of like length together, at most `size`, where padding costs the least.

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
