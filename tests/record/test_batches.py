"""Batches cost as little as any cut of the sorted inputs could."""

from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.record.write.batches import batches


def numbered(lengths: list[int]) -> list[Any]:
    return [(n, SimpleNamespace(streams={"text": range(k)})) for n, k in enumerate(lengths)]


def cost(groups: list[list[int]], worth: int) -> int:
    return sum(len(group) * max(group) + worth for group in groups)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9), st.integers(1, 4), st.integers(0, 50))
def test_no_other_cut_is_cheaper(lengths: list[int], size: int, worth: int) -> None:
    made = batches(numbered(lengths), size, worth)
    assert sorted(number for batch in made for number, _ in batch) == list(range(len(lengths)))
    groups = [[lengths[number] for number, _ in batch] for batch in made]
    assert all(len(group) <= size for group in groups)
    ordered = sorted(lengths)
    others = [
        cost([ordered[a:b] for a, b in pairwise((0, *inner, len(ordered)))], worth)
        for count in range(len(ordered))
        for inner in combinations(range(1, len(ordered)), count)
        if all(b - a <= size for a, b in pairwise((0, *inner, len(ordered))))
    ]
    assert cost(groups, worth) == min(others)
