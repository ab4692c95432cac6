"""Ways to damage a file: at random, or in its structure with all checksums made right again."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attention_atlas.store import files
from attention_atlas.store.seal import DIGITS, MARK, OPEN, Checksum

Random = random.Random
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**63, 10**30, -(10**30), 0.5, -0.5, 1e300, "", "x", "\ud800",
    "../../etc/passwd", "/etc/passwd", "a" * 5000, [], {}, [None], [1, "x"], {"x": 1}, "nan", [[]],
)  # fmt: skip

_NUMBERS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2"}
_WHOLE = (-1, 0, 1, 2, 3, 7, 100, -7, 2**31 - 1, -(2**31))
_FRACTIONS = (0.0, -1.0, 1e30, -1e30, 1e-40, float("nan"), float("inf"), -float("inf"))


# At random -------------------------------------------------------------------------------------


def flip_bit(data: bytearray, luck: Random) -> bytearray:
    data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)
    return data


def change_digit(data: bytearray, luck: Random) -> bytearray:
    """What a person or a bad disk does to a text file: another digit."""
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        place = luck.choice(places)
        data[place] = luck.choice([digit for digit in b"0123456789" if digit != data[place]])
        return data
    return flip_bit(data, luck)


def zeros(data: bytearray, luck: Random) -> bytearray:
    start = luck.randrange(len(data))
    stop = min(len(data), start + luck.choice((1, 16, 512, 4096)))
    if not any(data[start:stop]):
        return flip_bit(data, luck)
    data[start:stop] = bytes(stop - start)
    return data


def noise(data: bytearray, luck: Random) -> bytearray:
    start = luck.randrange(len(data))
    stop = min(len(data), start + luck.choice((2, 16, 512)))
    fresh = luck.randbytes(stop - start)
    data[start:stop] = fresh if fresh != data[start:stop] else bytes(b ^ 255 for b in fresh)
    return data


def cut(data: bytearray, luck: Random) -> bytearray:
    return data[: luck.randrange(len(data))]


def more(data: bytearray, luck: Random) -> bytearray:
    return data + luck.randbytes(luck.choice((1, 16, 4096)))


RANDOM: tuple[Callable[[bytearray, Random], bytearray], ...] = (
    flip_bit, change_digit, zeros, noise, cut, more,
)  # fmt: skip


# In structure ----------------------------------------------------------------------------------


def edit_json(content: Any, luck: Random) -> Any:
    """One value of a JSON tree replaced, deleted, renamed or doubled."""
    spots = list(_spots(content))
    holder, key = luck.choice(spots)
    deed = luck.randrange(6)
    value = holder[key]
    if deed == 0:
        del holder[key]
    elif deed == 1 and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif deed == 2 and isinstance(holder, list):
        holder.append(value)
    elif deed == 3 and type(value) in (int, float):
        holder[key] = luck.choice((value + 1, value - 1, -value, value * 2, value * 10**30, 0))
    elif deed == 4 and isinstance(value, str):
        holder[key] = luck.choice((value[:-1], value + "x", value.upper(), value[::-1], ""))
    else:
        holder[key] = luck.choice(ODD)
    return content


def _spots(content: Any) -> Any:
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in list(entries):
        yield content, key
        if isinstance(value, dict | list):
            yield from _spots(value)


def edit_tensors(path: Path, luck: Random) -> None:
    """The header of a safetensors file, or a few of its numbers, changed; then sealed again."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
    metadata = header.get("__metadata__")
    deed = luck.randrange(4)
    if deed == 0 and body:
        body = luck.choice((flip_bit, zeros, noise))(body, luck)
    elif deed == 3 and body:
        _edit_number(header, body, luck)
    elif deed == 1 and metadata is not None:
        name = next(key for key in metadata if key != "seal")
        metadata[name] = json.dumps(edit_json(json.loads(metadata[name]), luck))
    else:
        rest = {key: value for key, value in header.items() if key != "__metadata__"}
        rest = edit_json(rest, luck)
        header = ({} if metadata is None else {"__metadata__": metadata}) | rest
    if metadata is not None:
        metadata["seal"] = OPEN
    text = json.dumps(header, separators=(",", ":")).encode()
    content = len(text).to_bytes(8, "little") + text + bytes(body)
    path.write_bytes(_resealed(content) if metadata is not None else content)


def _edit_number(header: dict[str, Any], body: bytearray, luck: Random) -> None:
    """A number of one tensor replaced; each tensor as likely as another, however small."""
    name = luck.choice([key for key in header if key != "__metadata__"])
    first, last = header[name]["data_offsets"]
    kind = np.dtype(_NUMBERS.get(header[name]["dtype"], "u1"))
    numbers = np.frombuffer(body, kind, (last - first) // kind.itemsize, first)
    if not len(numbers):
        return
    odd = _WHOLE if kind.kind in "iu" else _FRACTIONS
    with np.errstate(over="ignore"):
        numbers[luck.randrange(len(numbers))] = np.array(luck.choice(odd)).astype(kind)


def edit_table(path: Path, luck: Random) -> None:
    """A column, some rows or the metadata of a Parquet file changed; then sealed again."""
    table = pq.read_table(path)
    about = dict(table.schema.metadata or {})
    deed = luck.randrange(6)
    place = luck.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place)
    if deed == 0:
        table = table.remove_column(place)
    elif deed == 1:
        table = table.set_column(place, name, pa.nulls(len(table), column.type))
    elif deed == 2:
        odd: Any = luck.choice(("x", 0.5, -1, [1], True, 10**15))
        table = table.set_column(place, name, pa.array([odd] * len(table)))
    elif deed == 3:
        keep = np.array(luck.choices(range(len(table)), k=luck.choice((0, 1, len(table)))), int)
        table = table.take(pa.array(keep, pa.int64()))
    elif deed == 4 and b"attention_atlas" in about:
        raw = json.loads(about[b"attention_atlas"])
        about[b"attention_atlas"] = json.dumps(edit_json(raw, luck)).encode()
    else:
        names = list(table.column_names)
        names[place] = luck.choice((f"{name}_", "", names[0]))
        table = table.rename_columns(names)
    sealed = b"seal" in about
    kept = {key: value for key, value in about.items() if key != b"seal"}
    table = table.replace_schema_metadata({**kept, **({b"seal": OPEN.encode()} if sealed else {})})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = sink.getvalue().to_pybytes()
    path.write_bytes(_resealed(content, last=True) if sealed else content)


def damage_structure(folder: Path, path: Path, luck: Random) -> str:
    """Change the structure of a file and make all checksums right again; return what was done."""
    name = path.relative_to(folder).as_posix()
    if path.name == "atlas.json":
        write_sealed_json(path, edit_json(files.read_json(path), luck))
        return name
    if path.suffix == ".safetensors":
        edit_tensors(path, luck)
    elif path.suffix == ".parquet":
        edit_table(path, luck)
    else:
        path.write_bytes(RANDOM[luck.randrange(len(RANDOM))](bytearray(path.read_bytes()), luck))
    _make_right(folder, path, name)
    return name


def write_sealed_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with a right seal, whatever it holds."""
    path.write_bytes(_resealed(json.dumps({"seal": OPEN, **content}).encode()))


def _make_right(folder: Path, path: Path, name: str) -> None:
    """Put the checksum of a file where its owner keeps it."""
    manifest = files.read_json(folder / "atlas.json")
    fresh = files.checksum(path)
    if name in manifest["tables"]:
        manifest["tables"][name] = fresh
    for shard in manifest["shards"]:
        if shard["file"] == name:
            shard.update(checksum=fresh, bytes=path.stat().st_size)
    if name.startswith("images/"):
        _fix_pictures(folder, manifest)
    files.write_json(folder / "atlas.json", manifest)


def _fix_pictures(folder: Path, manifest: dict[str, Any]) -> None:
    path = folder / "inputs.parquet"
    table = pq.read_table(path)
    sums = [[files.checksum(folder / file) for file in row] for row in table["images"].to_pylist()]
    place = table.column_names.index("picture_checksums")
    column = pa.array(sums, type=pa.list_(pa.string()))
    pq.write_table(table.set_column(place, "picture_checksums", column), path)
    manifest["tables"]["inputs.parquet"] = files.checksum(path)


def _resealed(content: bytes, last: bool = False) -> bytes:
    opened = OPEN.encode()
    place = (content.rfind(opened) if last else content.find(opened)) + len(MARK)
    digest = Checksum()
    digest.update(content)
    return content[:place] + digest.hexdigest().encode() + content[place + DIGITS :]
