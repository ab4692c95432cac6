"""Which keys of an input are sinks? Those that a page names and takes out.

A key is a sink of an input if it is one, by `store/sinks.py`, of the mean of the heads of some
layer of the tower. Found in a pass of its own over the rows that are measured.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from attention_atlas.measure.arrays import as_numpy
from attention_atlas.measure.input_meter import InputMeter, cut_stacks, group_alike
from attention_atlas.measure.read_blocks import stacked_blocks
from attention_atlas.measure.scores.sink import OnSinks
from attention_atlas.store.rows import StoredLayer
from attention_atlas.store.sinks import sinks_of

Found = dict[tuple[str, int], set[int]]  # stream of the keys, input → positions


def find_sinks(meter: InputMeter, layers: Sequence[StoredLayer], inputs: Sequence[int]) -> Found:
    """Find the sinks of some inputs in some layers of a tower."""
    found: Found = {}
    for number in inputs:
        for group in group_alike(layers, number):
            alike = [layers[place] for place in group]
            keys = found.setdefault((alike[0].layer.keys, number), set())
            keys.update(_sinks(meter, alike, number))
    return found


def _sinks(meter: InputMeter, layers: Sequence[StoredLayer], number: int) -> set[int]:
    """Find the sinks of one input in layers that are alike."""
    rows, keys = layers[0].size(number)
    heads = [stored.layer.heads for stored in layers]
    computing = meter.machine.for_input(sum(heads) * rows * keys)
    looks = OnSinks()
    states = [
        reduce(
            looks.join,
            map(looks.state, stacked_blocks(stack, number, meter.tokens, computing, meter.seed)),
        )
        for stack in cut_stacks(layers, keys, computing.largest)
    ]
    received = np.concatenate([as_numpy(state[0]) for state in states])  # (heads of all layers, M)
    even = as_numpy(states[0][1])
    parts = np.split(received, np.cumsum(heads)[:-1])
    return {int(key) for part in parts for key in sinks_of(part.mean(0), even)}
