"""A layout method is one file and one line in a table."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.layout.estimate import estimate
from attention_atlas.layout.methods import METHODS, Method

CIRCLE = '''
"""Puts all points on a circle in the order of their numbers."""

import torch


def lay_out(points, dims, near, seed):
    angle = torch.linspace(0, 6.28, points.shape[1])
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    return circle.expand(len(points), -1, -1)


def place(new, known):
    return known.places[:, : new.shape[1]]
'''


@pytest.fixture
def circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "circle_layout.py").write_text(CIRCLE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(METHODS, "circle", Method("Circle", "circle_layout", 0, (0.01, 0.0, 0.0)))
    yield "circle"
    sys.modules.pop("circle_layout", None)


def test_a_new_method_is_laid_out_measured_and_estimated(circle: str, tmp_path: Path) -> None:
    atlas = aa.capture(
        "builtin:gpt", "The cat sat on the mat.", path=tmp_path / "x.atlas", progress=False
    )
    made = atlas.layout(circle, progress=False)
    places, figures = made.of("L0H0")
    steps = 2 / 65535  # places are rounded to 65536 steps across the circle
    assert np.ptp(np.linalg.norm(places, axis=1)) <= 2 * steps
    assert set(figures) >= {"map.correlation", "map.trust"}
    assert estimate(atlas, circle, cores=1) == pytest.approx(0.01 * len(atlas.heads()))
    assert (atlas.path / "layouts" / "circle-2d.safetensors").is_file()
