"""What is in a folder that HeadVis reads?

    config.json             model_name, heads [[layer, head], …], n_layers, n_heads, n_intervals,
                            metrics, metric_descriptions, head_data_pattern, has_umap, umap_heads
    scatter_data.json       [{"layer": 0, "head": 0, METRIC: number, …}, …]
    heads/L{l}H{h}.json     sequences, qk_distance_histogram, top_query_tokens, top_key_tokens,
                            histogram, statistics

A sequence is {sequence_id, interval, tokens, attention_indices, attention_values, seq_len,
max_activation}; an index is query · seq_len + key. The form is that of the docstrings of HeadVis'
data_pipeline.py; Neuronpedia's port leaves seq_len out of its tables and adds pipeline_config.
Everything here comes from a stranger: a wrong type, NaN, a number too large, a name that leads out
of the folder ends in a StoreError that says where.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import StoreError
from attention_atlas.names.token_text import can_be_written
from attention_atlas.store import files

CONFIG, SCATTER, HEADS = "config.json", "scatter_data.json", "heads"
PATTERN = "L{layer}H{head}.json"
LONGEST = 4096  # tokens of a sequence
_MOST_BYTES = 2**29  # of one file
_MOST_HEAD = 2**16
_MOST_ID = 2**53
_SLACK = 1e-3
_TODO = "export it again"

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class HeadVisConfig:
    """What config.json says: the model, its heads, and where the file of a head lies."""

    model: str
    heads: Pairs
    n_layers: int
    n_heads: int
    pattern: str

    def file(self, layer: int, head: int) -> str:
        return self.pattern.replace("{layer}", str(layer)).replace("{head}", str(head))


@dataclass(frozen=True)
class HeadVisSequence:
    """One sequence of one head: tokens, and the weights that were kept as index and value."""

    number: int
    tokens: tuple[str, ...]
    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]

    def weights(self) -> npt.NDArray[np.float32]:
        """Return the weights (N, N); what was not kept is 0."""
        n = len(self.tokens)
        dense = np.zeros(n * n, np.float32)
        dense[self.indices] = self.values
        return dense.reshape(n, n)


def read_config(folder: Path) -> HeadVisConfig:
    """Read config.json; raise a StoreError that says what is wrong with it."""
    path = folder / CONFIG
    raw = _read(path, dict)
    heads = _list(path, raw.get("heads"), "heads")
    pairs = tuple(_pair(path, one, f"heads[{i}]") for i, one in enumerate(heads))
    if not pairs:
        _refuse(path, "heads is empty")
    if len(set(pairs)) < len(pairs):
        _refuse(path, "heads names a head twice")
    pattern = _text(path, raw.get("head_data_pattern", PATTERN), "head_data_pattern")
    inside = "{layer}" in pattern and "{head}" in pattern and pattern.endswith(".json")
    if not inside or any(mark in pattern for mark in ("/", "\\", ":", "\0", "..")):
        _refuse(
            path, f"head_data_pattern is {ascii(pattern)[:60]}, which is no name like {PATTERN}"
        )
    most = (1 + max(pair[axis] for pair in pairs) for axis in (0, 1))
    n_layers, n_heads = (
        max(least, _whole(path, raw.get(name, least), name, _MOST_HEAD))
        for least, name in zip(most, ("n_layers", "n_heads"), strict=True)
    )
    model = _text(path, raw.get("model_name", "headvis"), "model_name")
    return HeadVisConfig(model, pairs, n_layers, n_heads, pattern)


def read_scatter(folder: Path, config: HeadVisConfig) -> list[dict[str, Any]]:
    """Read scatter_data.json: a row a head with its metrics, in the order of the file."""
    path = folder / SCATTER
    rows = []
    for i, raw in enumerate(_read(path, list)):
        if not isinstance(raw, dict):
            _refuse(path, f"row {i} is {_shown(raw)}, not an object")
        pair = tuple(
            _whole(path, raw.get(n), f"row {i}: {n}", _MOST_HEAD) for n in ("layer", "head")
        )
        if pair not in config.heads:
            _refuse(path, f"row {i} is of L{pair[0]}H{pair[1]}, which {CONFIG} does not name")
        row: dict[str, Any] = {"layer": pair[0], "head": pair[1]}
        for name, value in raw.items():
            if name not in row and value is not None:
                row[_text(path, name, "a metric")] = _number(path, value, f"row {i}: {name[:40]}")
        rows.append(row)
    return rows


def read_head(folder: Path, config: HeadVisConfig, layer: int, head: int) -> list[HeadVisSequence]:
    """Read the sequences of one head."""
    path = folder / HEADS / config.file(layer, head)
    raw = _list(path, _read(path, dict).get("sequences"), "sequences")
    found = [_sequence(path, one, f"sequences[{i}]") for i, one in enumerate(raw)]
    if len({one.number for one in found}) < len(found):
        _refuse(path, "a sequence_id is there twice")
    return found


def _sequence(path: Path, raw: Any, where: str) -> HeadVisSequence:
    if not isinstance(raw, dict):
        _refuse(path, f"{where} is {_shown(raw)}, not an object")
    number = _whole(path, raw.get("sequence_id"), f"{where}.sequence_id", _MOST_ID)
    tokens = _list(path, raw.get("tokens"), f"{where}.tokens")
    n = len(tokens)
    if not 0 < n <= LONGEST:
        _refuse(path, f"{where} has {n} tokens; between 1 and {LONGEST} are read")
    texts = tuple(_text(path, one, f"{where}.tokens[{i}]") for i, one in enumerate(tokens))
    length = raw.get("seq_len", n)
    if type(length) is not int or length != n:
        _refuse(path, f"{where}.seq_len is {_shown(length)} and there are {n} tokens")
    indices = _numbers(path, raw.get("attention_indices"), f"{where}.attention_indices", int)
    values = _numbers(path, raw.get("attention_values"), f"{where}.attention_values", float)
    if len(indices) != len(values):
        _refuse(path, f"{where} has {len(indices)} indices and {len(values)} values")
    if len(indices) and (indices.min() < 0 or indices.max() >= n * n):
        _refuse(path, f"{where} has an index outside of 0 to {n * n - 1}")
    if len(np.unique(indices)) < len(indices):
        _refuse(path, f"{where} has an index twice")
    if len(values) and (values.min() < 0 or values.max() > 1 + _SLACK):
        _refuse(path, f"{where} has weights outside of 0 to 1")
    return HeadVisSequence(number, texts, indices.astype(np.int64), values.astype(np.float32))


# Values of JSON ------------------------------------------------------------------------------


def _read(path: Path, kind: type) -> Any:
    """Read a JSON file that holds a list or an object; NaN and infinity are no JSON."""
    if not files.is_file(path):
        raise StoreError(f"{path} is missing, so this is no whole export of HeadVis; {_TODO}")
    if path.stat().st_size > _MOST_BYTES:
        _refuse(path, f"it is larger than {_MOST_BYTES // 2**20} MB")
    data = files.read_bytes(path)
    try:
        raw = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise StoreError(f"{path} cannot be read: {str(problem)[:120]}; {_TODO}") from problem
    if not isinstance(raw, kind):
        _refuse(
            path, f"it holds {_shown(raw)} instead of {'a list' if kind is list else 'an object'}"
        )
    return raw


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _list(path: Path, raw: Any, where: str) -> list[Any]:
    if not isinstance(raw, list):
        _refuse(path, f"{where} is {_shown(raw)}, not a list")
    return raw


def _pair(path: Path, raw: Any, where: str) -> tuple[int, int]:
    if not isinstance(raw, list) or len(raw) != 2:
        _refuse(path, f"{where} is {_shown(raw)}, not [layer, head]")
    layer, head = (_whole(path, one, where, _MOST_HEAD) for one in raw)
    return layer, head


def _whole(path: Path, raw: Any, where: str, most: int) -> int:
    if type(raw) is not int or not 0 <= raw <= most:
        _refuse(path, f"{where} is {_shown(raw)}, not a whole number from 0 to {most}")
    return int(raw)


def _number(path: Path, raw: Any, where: str) -> float:
    if type(raw) not in (int, float) or not abs(raw) <= 1e300 or not math.isfinite(raw):
        _refuse(path, f"{where} is {_shown(raw)}, not a number")
    return float(raw)


def _numbers(path: Path, raw: Any, where: str, kind: type) -> npt.NDArray[Any]:
    """Return a list of whole numbers or of numbers as an array."""
    given = _list(path, raw, where)
    kinds = (int,) if kind is int else (int, float)
    wrong = next((one for one in given if type(one) not in kinds or not abs(one) < 2**53), None)
    if wrong is not None:
        _refuse(path, f"{where} has {_shown(wrong)}, not a {'whole ' if kind is int else ''}number")
    return np.array(given, np.int64 if kind is int else np.float64)


def _text(path: Path, raw: Any, where: str) -> str:
    if not isinstance(raw, str) or not can_be_written(raw):
        _refuse(path, f"{where} is {_shown(raw)}, not a text")
    return str(raw)


def _shown(raw: Any) -> str:
    """Return a value in at most forty characters; a number of a million digits is not spelled."""
    if isinstance(raw, int) and abs(raw) > _MOST_ID:
        return "a huge number"
    text = "missing" if raw is None else ascii(raw) if not isinstance(raw, list | dict) else ""
    return text[:40] if text else f"a {'list' if isinstance(raw, list) else 'JSON object'}"


def _refuse(path: Path, what: str) -> NoReturn:
    raise StoreError(f"{path} is no file of HeadVis: {what}; {_TODO}")
