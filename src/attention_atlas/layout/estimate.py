"""About how long would a map take on this machine's cores?

A head costs a little for itself, then in proportion to its points, and to the square of its points
(every point is compared with every other). Fitted on one core of the machine that
`benchmarks/way.md` names; on a faster one the estimate is too high. Nothing here needs torch.
"""

from attention_atlas.layout.methods import METHODS
from attention_atlas.store.reader import StoredAtlas

TOKENS = 5000  # the most on a map, by default
PLACED, COMPARED = 4e-5, 1e-8  # seconds a placed point; and for each point of the sample
WORTH_A_PROCESS = 300_000  # points of all heads; below it, starting processes takes longer


def estimate(atlas: StoredAtlas, method: str, cores: int, tokens: int = TOKENS) -> float:
    """Estimate the seconds that a map takes on a CPU."""
    once, thousand, million = METHODS[method].costs
    streams = atlas.tokens()["stream"].value_counts()
    points = {stream: min(tokens, int(streams[stream])) for stream in atlas.manifest.streams}
    seconds = total = 0.0
    for tower in atlas.towers:
        for layer in tower.layers:
            p = points[layer.queries] + points[layer.keys]
            total += layer.heads * p
            seconds += layer.heads * (once + thousand * p / 1e3 + million * p * p / 1e6)
    return seconds / (cores if total >= WORTH_A_PROCESS else 1)


def estimate_placing(points: int, sample: int) -> float:
    """Estimate the seconds that placing so many queries and keys among a sample takes on a CPU."""
    return 3 + points * (PLACED + COMPARED * sample)
