"""Does a map file keep the names of its own figures?"""

import math
from pathlib import Path

import pytest

from attention_atlas.store.maps import FIGURES, read_figures, read_map
from tests import planted
from tests.map_figures import write_figures


def test_a_file_with_other_figures_is_read_by_its_own_names(tmp_path: Path) -> None:
    atlas = planted.planted(tmp_path / "x.atlas", 2)
    atlas.layout("pca", progress=False)
    path = atlas.path / "layouts" / "pca-2d.safetensors"
    before = read_figures(path)
    assert tuple(before["L0H0"]) == FIGURES
    assert before["L0H1"] == read_map(path).of("L0H1")[1]
    write_figures(path, {"L0H0": {"chance": 0.25, "map.strongest": 0.75}, "L0H1": {"chance": 0.5}})
    assert read_map(path).figures == ("chance", "map.strongest")
    assert read_map(path).of("L0H0")[1] == {"chance": 0.25, "map.strongest": 0.75}
    figures = read_figures(path)["L0H1"]
    assert figures["chance"] == pytest.approx(0.5)
    assert math.isnan(figures["map.strongest"])
