"""How does an atlas become a folder that HeadVis reads? Its form is in `headvis_form`.

A head's file holds sequences of ten intervals of its largest weight, each row cut to its largest
weights. Clouds of vectors (umap/) are not written; config.json says so.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import InputError, PickError
from attention_atlas.store.files import write_whole
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import Float32
from attention_atlas.store.write import check_folder
from attention_atlas.ways.headvis_form import CONFIG, HEADS, LONGEST, PATTERN, SCATTER
from attention_atlas.ways.headvis_metrics import WORDS, HeadVisSums

INTERVALS = 10  # the tenth has the largest weights
SHOWN_TOKENS = 50
_BINS = 10  # of the histogram of largest weights
_HEADER = ("server_config.json", "attributions/manifest.json")  # empty: no server


@dataclass(frozen=True)
class Cut:
    """How much of a row is written: its `top` largest weights from `least` on, rounded."""

    top: int | None = 8
    least: float = 0.005
    digits: int | None = 4

    def rounded(self, value: float) -> float:
        return float(value) if self.digits is None else round(float(value), self.digits)


def to_headvis(
    atlas: StoredAtlas,
    folder: str | Path,
    *,
    tower: str | None = None,
    top: int | None = 8,
    threshold: float = 0.005,
    digits: int | None = 4,
    samples: int = 20,
    seed: int = 0,
) -> Path:
    """Write an atlas as files for HeadVis; returns the folder.

    tower      which one, if the model has several; its queries and keys are the same tokens
    top        weights kept of a row; None: all
    threshold  smaller weights are left out
    digits     decimals of a weight; None: all of them
    samples    sequences kept of each of the ten intervals of a head's largest weight
    """
    place, chosen = Path(folder), _tower(atlas, tower)
    _check(atlas, chosen, place, top, threshold, samples)
    cut = Cut(top, threshold, digits)
    rows: list[dict[str, Any]] = []
    for layer in chosen.layers:
        rows += _write_layer(atlas, chosen, layer, place, cut, _draws(samples, seed))
    rows = _own_metrics(atlas, rows)
    _write(place / SCATTER, rows)
    for name in _HEADER:
        _write(place / name, {})
    _write(place / CONFIG, _config(atlas, chosen, rows))  # last: with it the export is whole
    return place


@dataclass(frozen=True)
class _Draws:
    samples: int
    seed: int

    def kept(self, largest: npt.NDArray[np.float64]) -> dict[int, int]:
        """Return the inputs that are kept of a head, with their interval, in their order."""
        count = len(largest)
        rank = np.empty(count, np.intp)
        rank[np.argsort(largest, kind="stable")] = np.arange(count)
        interval = INTERVALS - (count - 1 - rank) * INTERVALS // count
        luck = np.random.default_rng(self.seed)
        kept: list[int] = []
        for number in range(1, INTERVALS + 1):
            inside = np.flatnonzero(interval == number)
            if len(inside) > self.samples:
                inside = luck.choice(inside, self.samples, replace=False)
            kept += inside.tolist()
        return {i: int(interval[i]) for i in sorted(kept)}


def _draws(samples: int, seed: int) -> _Draws:
    return _Draws(samples, seed)


def _write_layer(
    atlas: StoredAtlas, tower: Tower, layer: Layer, folder: Path, cut: Cut, draws: _Draws
) -> Iterator[dict[str, Any]]:
    """Write the files of the heads of a layer; yields the row of each in scatter_data.json."""
    known: list[list[int]] = [[] for _ in range(layer.heads)]  # inputs that a head has weights of
    largest: list[list[float]] = [[] for _ in range(layer.heads)]
    sums = [HeadVisSums(1) for _ in range(layer.heads)]
    for number, weights, tokens in _inputs(atlas, tower, layer, range(len(atlas))):
        for head, one in enumerate(weights):
            if one.any():  # a head made from HeadVis' files may lack an input
                known[head].append(number)
                largest[head].append(_largest(one))
                sums[head].add(one[None], tokens)
    for head in range(layer.heads):
        if known[head]:
            top = np.array(largest[head])
            kept = {known[head][i]: part for i, part in draws.kept(top).items()}
            found = _sequences(atlas, tower, layer, head, kept, cut)
            payload = _payload(found, [cut.rounded(one) for one in largest[head]])
            name = PATTERN.replace("{layer}", str(layer.layer)).replace("{head}", str(head))
            _write(folder / HEADS / name, payload)
            metrics = {name: float(value[0]) for name, value in sums[head].metrics().items()}
            yield {"layer": layer.layer, "head": head, **metrics}


def _inputs(
    atlas: StoredAtlas, tower: Tower, layer: Layer, numbers: Sequence[int] | range,
    heads: Sequence[int] | None = None,
) -> Iterator[tuple[int, Float32, list[str]]]:  # fmt: skip
    """Yield the weights (H, N, N) and the tokens of some inputs."""
    for number in numbers:
        tokens = [str(text) for text in atlas.tokens(number, layer.queries)["text"]]
        yield number, atlas.rows(number, layer.layer, tower.name, heads), tokens


def _largest(weights: Float32) -> float:
    """Return the largest weight (of N, N) without the first row and column, as HeadVis does."""
    rest = weights[1:, 1:]
    return float(rest.max()) if rest.size else 0.0


def _sequences(
    atlas: StoredAtlas, tower: Tower, layer: Layer, head: int, kept: Mapping[int, int], cut: Cut
) -> list[dict[str, Any]]:
    """Return the sequences of one head."""
    own = atlas.inputs().get("sequence_id")
    sequences = []
    for number, weights, tokens in _inputs(atlas, tower, layer, list(kept), [head]):
        indices, values = _sparse(weights[0], cut)
        sequences.append(
            {
                "sequence_id": number if own is None else int(own.iloc[number]),
                "interval": kept[number],
                "tokens": tokens,
                "attention_indices": indices.tolist(),
                "attention_values": [cut.rounded(value) for value in values],
                "seq_len": len(tokens),
                "max_activation": cut.rounded(_largest(weights[0])),
            }
        )
    return sequences


def _sparse(weights: Float32, cut: Cut) -> tuple[npt.NDArray[np.intp], Float32]:
    """Return the flat indices q · N + k and the values of what is kept of the weights (N, N)."""
    n = len(weights)
    kept = (weights >= cut.least) & (weights > 0)
    if cut.top is not None and cut.top < n:
        order = np.argsort(-weights, axis=1, kind="stable")[:, cut.top :]
        np.put_along_axis(kept, order, False, axis=1)
    flat = np.flatnonzero(kept)
    return flat, weights.reshape(-1)[flat]


def _payload(sequences: list[dict[str, Any]], largest: Sequence[float]) -> dict[str, Any]:
    """Return the contents of a head's file."""
    counts, edges = np.histogram(largest, bins=_BINS, range=(0.0, 1.0))
    return {
        "sequences": sequences,
        "qk_distance_histogram": _distances(sequences),
        "top_query_tokens": _top_tokens(sequences, query=True),
        "top_key_tokens": _top_tokens(sequences, query=False),
        "histogram": {
            "bin_edges": [round(float(edge), 4) for edge in edges], "bin_values": counts.tolist(),
        },
        "statistics": {
            "n_samples": len(largest), "mean_max_activation": round(float(np.mean(largest)), 4),
        },
    }  # fmt: skip


def _distances(sequences: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count the kept weights by |q − k|: 0, 1, 2 to 3, 4 to 7, …"""
    longest = max(one["seq_len"] for one in sequences)
    edges = [0, *(2**power for power in range(max(1, (longest - 1).bit_length()) + 1))]
    values = np.zeros(len(edges) - 1, np.int64)
    for one in sequences:
        query, key = np.divmod(np.array(one["attention_indices"], np.int64), one["seq_len"])
        values += np.histogram(np.abs(query - key), bins=edges)[0]
    return {"bin_edges": edges, "bin_values": values.tolist()}


def _top_tokens(sequences: Sequence[Mapping[str, Any]], query: bool) -> list[dict[str, Any]]:
    """Rank tokens by the weight that they give away (query) or get (key)."""
    totals = Counter[str]()
    for one in sequences:
        for index, value in zip(one["attention_indices"], one["attention_values"], strict=True):
            place = index // one["seq_len"] if query else index % one["seq_len"]
            totals[one["tokens"][place]] += value
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_TOKENS]
    return [{"token": token, "weight": round(weight, 4)} for token, weight in ranked]


def _own_metrics(atlas: StoredAtlas, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the metrics that came with the atlas, if it was made from HeadVis' files."""
    carried = (atlas.manifest.options.get("headvis") or {}).get("metrics") or []
    known = {(row["layer"], row["head"]): row for row in carried}
    return [known.get((row["layer"], row["head"]), row) for row in rows]


def _config(atlas: StoredAtlas, tower: Tower, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    carried = atlas.manifest.options.get("headvis") or {}
    names = list(dict.fromkeys(name for row in rows for name in row))
    metrics = [name for name in names if name not in ("layer", "head")]
    return {
        "model_name": atlas.manifest.model,
        "heads": [[row["layer"], row["head"]] for row in rows],
        "n_layers": tower.depth,
        "n_heads": carried.get("n_heads") or max(layer.heads for layer in tower.layers),
        "n_intervals": INTERVALS,
        "metrics": metrics,
        "metric_descriptions": {name: WORDS[name] for name in metrics if name in WORDS},
        "head_data_pattern": PATTERN,
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": [{"key": "qk_distance_histogram", "label": "Distance of query and key"}],
        "custom_tables": [
            {"key": "top_query_tokens", "label": "Top query tokens"},
            {"key": "top_key_tokens", "label": "Top key tokens"},
        ],
        "statistics_display": {
            "mean_max_activation": {"label": "Mean largest weight", "format": "default"},
        },
    }  # fmt: skip


def _tower(atlas: StoredAtlas, name: str | None) -> Tower:
    names = ", ".join(tower.name for tower in atlas.towers)
    if name is None and len(atlas.towers) > 1:
        raise PickError(f"the model has several towers; name one of them: {names}")
    chosen = next((one for one in atlas.towers if name in (None, one.name)), None)
    if chosen is None:
        raise PickError(f"no tower is named {name!r}; there is {names}")
    if chosen.role == "cross" or any(layer.queries != layer.keys for layer in chosen.layers):
        raise PickError(
            f"queries and keys of {chosen.name} are different tokens, which HeadVis has no form "
            "for; name a tower of self-attention"
        )
    return chosen


def _check(
    atlas: StoredAtlas, tower: Tower, folder: Path, top: int | None, least: float, samples: int
) -> None:
    check_folder(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / CONFIG).exists():
        raise InputError(f"{folder} is not empty and no export of HeadVis; give another folder")
    if (top is not None and top < 1) or not 0 <= least < 1 or samples < 1:
        raise InputError(
            f"top is {top}, threshold {least}, samples {samples}; give top and samples of at least "
            "1 and a threshold from 0 to below 1"
        )
    for number in range(len(atlas)):
        n = max(len(atlas.tokens(number, layer.queries)) for layer in tower.layers)
        if n > LONGEST:
            raise InputError(
                f"input {number} has {n} tokens and HeadVis' files are for short ones, at most "
                f"{LONGEST}; capture the atlas of shorter texts"
            )


def _write(path: Path, content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    write_whole(path, lambda part: _put(part, text.encode()))


def _put(part: Path, data: bytes) -> None:
    part.write_bytes(data)
