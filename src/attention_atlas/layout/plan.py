"""Which heads are laid out together, with which tokens, in which chunks?

Heads share a sample of tokens when they share their streams: all heads of a tower, as a rule. The
plan depends on the atlas and the options alone, so every process of a run makes the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch

from attention_atlas.layout.device import heads_at_once
from attention_atlas.layout.estimate import TOKENS
from attention_atlas.layout.joint import JOINTS
from attention_atlas.layout.methods import METHODS, find_method
from attention_atlas.layout.sample import Numbers, sample
from attention_atlas.layout.sight import MapTokens, Sight
from attention_atlas.names.errors import InputError
from attention_atlas.names.options import check_seed
from attention_atlas.store.reader import StoredAtlas


@dataclass(frozen=True)
class Options:
    """All that a map depends on; recorded in its file."""

    method: str
    dims: int = 2
    joint: str = "attention"
    tokens: int = TOKENS
    sampling: str = "inputs"
    seed: int = 0
    device: str = "cpu"

    @property
    def name(self) -> str:
        return f"{self.method}-{self.dims}d"

    def check(self) -> None:
        find_method(self.method, self.dims)
        check_seed(self.seed)
        if self.tokens < 1:
            raise InputError(f"asked for {self.tokens} tokens a head; give 1 or more")
        if self.joint not in JOINTS:
            names = ", ".join(JOINTS)
            raise InputError(f"no normalisation is named {self.joint!r}; there are: {names}")


def made_of_attention(asked: Mapping[str, Any]) -> bool:
    """Tell whether the options of a map tie its points by attention; PCA has no ties."""
    return bool(asked["joint"] == "attention" and METHODS[asked["method"]].neighbours)


@dataclass(frozen=True)
class Task:
    """Heads that share their tokens, laid out in chunks."""

    group: str
    heads: tuple[str, ...]
    queries: Numbers  # which rows of the atlas's queries, and of its keys
    keys: Numbers
    tokens: tuple[Numbers, Numbers]  # their token numbers
    points: MapTokens
    sights: dict[tuple[object, ...], Sight] = field(default_factory=dict)  # the one read last


def plan(atlas: StoredAtlas, options: Options) -> list[Task]:
    """Group heads by their tokens and draw the sample of each group."""
    atlas.need_vectors()
    groups: dict[tuple[str, str, str], list[str]] = {}
    several = len(atlas.towers) > 1
    for tower in atlas.towers:
        for layer in tower.layers:
            names = [f"L{layer.layer}H{head}" for head in range(layer.heads)]
            names = [f"{tower.name}.{name}" if several else name for name in names]
            groups.setdefault((tower.name, layer.queries, layer.keys), []).extend(names)
    stages = [name for name, _, _ in groups]
    tasks = []
    for (name, query_stream, key_stream), heads in groups.items():
        group = name if stages.count(name) == 1 else f"{name}.{query_stream}"
        whole = [atlas.vector_tokens(stream) for stream in (query_stream, key_stream)]
        rows = [sample(table, options.tokens, options.sampling, options.seed) for table in whole]
        numbers = [
            table.index.to_numpy(np.int64)[picked]
            for table, picked in zip(whole, rows, strict=True)
        ]
        tasks.append(
            Task(group, tuple(heads), rows[0], rows[1], (numbers[0], numbers[1]),
                 points_of(whole, rows))
        )  # fmt: skip
    return tasks


def points_of(tables: list[pd.DataFrame], rows: list[Numbers]) -> MapTokens:
    """Describe some rows of the tables of queries and of keys: inputs, positions, special."""
    inputs, positions, special = [], [], []
    for table, picked in zip(tables, rows, strict=True):
        of_input = table["input"].to_numpy(np.int64)
        inputs.append(of_input[picked])
        positions.append(picked - np.searchsorted(of_input, inputs[-1]))
        special.append(table["special"].to_numpy(bool)[picked])
    return MapTokens(inputs[0], inputs[1], positions[0], positions[1], special[0], special[1])


Chunk = tuple[int, slice]  # which task, which of its heads


def cut_chunks(tasks: list[Task], options: Options) -> list[Chunk]:
    chunks = []
    device = torch.device(options.device)
    for number, task in enumerate(tasks):
        points = len(task.queries) + len(task.keys)
        together = heads_at_once(
            len(task.heads), points, METHODS[options.method].neighbours, device
        )
        # the short chunk comes first: all but the first are read while another is computed
        ends = range(len(task.heads), 0, -together)
        chunks += [(number, slice(max(0, end - together), end)) for end in reversed(ends)]
    return chunks
