"""Which inputs run together?"""

from itertools import pairwise

from attention_atlas.models.encode import Encoded

Numbered = tuple[int, Encoded]  # an input's number in the atlas, and the input
# How many padding tokens cost as much time as one more batch, in which a CPU reads all parameters
# again and a GPU waits for its kernels: 30 was measured with 85 million parameters on two cores.
WORTH = {"cpu": 30, "gpu": 10_000}
# No input is padded to many times its length, however cheap that is: masks grow with the square.
LONGER, SHORT = 8, 64  # at most so many times, of inputs of at least so many tokens


def token_count(numbered: Numbered) -> int:
    """Count the tokens of all streams of an input."""
    return sum(len(tokens) for tokens in numbered[1].streams.values())


def batches(items: list[Numbered], size: int, worth: int) -> list[list[Numbered]]:
    """Cut inputs into batches of similar length, at most `size` each, with the least padding.

    worth  how many padding tokens one more batch must save
    """
    ordered = sorted(items, key=token_count)
    lengths = [token_count(numbered) for numbered in ordered]
    # least[e]: the lowest cost of the first e inputs, and where their last batch starts
    least: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(ordered) + 1):
        least_length = lengths[end - 1] / LONGER
        starts = [
            start
            for start in range(max(0, end - size), end)
            if start == end - 1 or max(SHORT, lengths[start]) >= least_length
        ]
        least.append(min((least[i][0] + (end - i) * lengths[end - 1] + worth, i) for i in starts))
    cuts = [len(ordered)]
    while cuts[-1]:
        cuts.append(least[cuts[-1]][1])
    return [ordered[start:end] for end, start in pairwise(cuts)][::-1]
