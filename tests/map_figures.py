"""Map files whose figures are known, for tests of what reads them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from attention_atlas.store.maps import read_map, write_map


def write_figures(path: Path, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Give the heads of a map these figures (head → figure → value); what is not given is NaN."""
    layout = read_map(path)
    names = tuple(dict.fromkeys(name for row in figures.values() for name in row))
    groups = {
        name: replace(group, fidelity=np.array(
            [[figures.get(head, {}).get(name, np.nan) for name in names] for head in group.heads],
            np.float32,
        ))
        for name, group in layout.groups.items()
    }  # fmt: skip
    write_map(path, replace(layout, groups=groups, figures=names))
