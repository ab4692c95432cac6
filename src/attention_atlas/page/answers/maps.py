"""Which maps does an atlas have, and what lies where on them?

map/umap-2d/encoder · points/umap-2d/encoder · norms/umap-2d/encoder. A name is
looked up among the maps of the folder; a name that came from outside never becomes a path.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.layout.methods import DIMS, METHODS
from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.names.token_text import shown_by_stream
from attention_atlas.page.answers.colours import Points, colour_columns
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.wire import maps as wire
from attention_atlas.store.maps import Map, MapHeads, describe, read_map
from attention_atlas.store.patch_places import places
from attention_atlas.store.reader import StoredAtlas

Numbers = npt.NDArray[np.int64]


# All maps ----------------------------------------------------------------------------------------


def map_files(atlas: StoredAtlas) -> dict[str, Path]:
    """Return the maps of an atlas, name → file, in the order of METHODS."""
    files = {path.stem: path for path in (atlas.path / "layouts").glob("*.safetensors")}
    order = [f"{method}-{dims}d" for method in METHODS for dims in DIMS]
    return {name: files[name] for name in order if name in files}


def map_infos(atlas: StoredAtlas) -> tuple[list[wire.MapInfo], list[str]]:
    """Return the maps that can be shown, and a sentence for each file that cannot."""
    infos, notes = [], []
    for name, path in map_files(atlas).items():
        try:
            infos.append(_info(name, path))
        except StoreError as problem:
            notes.append(f"the map {name} is not shown: {problem}")
    return infos, notes


def _info(name: str, path: Path) -> wire.MapInfo:
    options, groups = describe(path)
    asked = options["asked"]
    said = {**asked, **{key: value for key, value in options.items() if key != "asked"}}
    texts = {key: str(value) for key, value in said.items() if key not in ("method", "dims")}
    return wire.MapInfo(
        name, asked["method"], asked["dims"],
        [wire.MapGroup(group, heads, n, m) for group, (heads, n, m) in groups.items()], texts,
    )  # fmt: skip


def why_no_maps(atlas: StoredAtlas) -> str:
    """Return why maps cannot be made; empty if they can."""
    if atlas.manifest.kept_inputs == frozenset():
        return atlas.kept_words()
    lacking = {"query", "key"} - set(atlas.manifest.keep)
    if not lacking:
        return ""
    kept = ", ".join(atlas.manifest.keep) or "nothing"
    return (
        f"this atlas was captured without queries and keys (kept: {kept}), so it has no maps; "
        "capture it again with --keep query --keep key"
    )


# One map -----------------------------------------------------------------------------------------


def map_places(subject: object, name: str, group: str) -> wire.MapPlaces:
    """Return the places of the points of every head of a group."""
    _, layout, heads = find_group(subject, name, group)
    return wire.MapPlaces(
        name, group, heads.heads, len(heads.query_tokens), heads.places, heads.box, heads.c,
        layout.figures, heads.fidelity,
    )  # fmt: skip


def map_points(subject: object, name: str, group: str) -> wire.MapPoints:
    """Return what each point of a group is, and what can colour it."""
    atlas, _, heads = find_group(subject, name, group)
    tokens = np.concatenate([heads.query_tokens, heads.key_tokens])
    frame = atlas.tokens().iloc[tokens]
    return make_points(atlas, frame, name, group, len(heads.query_tokens))


def make_points(
    atlas: StoredAtlas, frame: pd.DataFrame, name: str, group: str, queries: int,
    like: wire.MapPoints | None = None,
) -> wire.MapPoints:  # fmt: skip
    """Return the tokens of a frame as points; with `like`, in the ranges of its colours."""
    raw, special = frame["text"].tolist(), frame["special"].tolist()
    texts = np.array(shown_by_stream(frame["stream"].astype(str).tolist(), raw, special), str)
    distinct, which = np.unique(texts, return_inverse=True)
    lengths, counts = _lengths(atlas, frame), atlas.tokens()["text"].value_counts()
    points = Points(frame, texts, atlas.inputs(), lengths, counts)
    return wire.MapPoints(
        name, group, queries,
        frame["token"].to_numpy(np.uint32), _small(frame["input"]), _small(frame["position"]),
        [str(text) for text in distinct], _small(which), frame["special"].to_numpy(np.uint8),
        colour_columns(points, None if like is None else like.columns),
        *(places(frame) or (None, None)),
    )  # fmt: skip


def _lengths(atlas: StoredAtlas, frame: pd.DataFrame) -> Numbers:
    """Return the number of tokens in the stream of each row's input."""
    pairs = frame[["input", "stream"]].astype({"stream": str})
    numbers = sorted(set(pairs["input"]))
    known = atlas.tokens()
    extra = [atlas.tokens(int(i)) for i in numbers if i >= atlas.manifest.inputs]
    whole = pd.concat([known, *extra])[["input", "stream"]].astype({"stream": str})
    sizes = whole.value_counts(["input", "stream"])
    return np.asarray(sizes.reindex(pd.MultiIndex.from_frame(pairs)).to_numpy(), np.int64)


def _small(numbers: "npt.ArrayLike") -> npt.NDArray[np.unsignedinteger]:
    array = np.asarray(numbers)
    fits = not array.size or int(array.max()) < np.iinfo(np.uint16).max
    return array.astype(np.uint16 if fits else np.uint32)


# What is saved -----------------------------------------------------------------------------------


def saved_maps(saving: Saving, word: str) -> Iterator[str]:
    """Yield the paths of one packet for every map of a folder, or for the picked map."""
    if not saving.opens("map") or not isinstance(saving.subject, StoredAtlas):
        return
    infos, _ = map_infos(saving.subject)
    picked = [info for info in infos if info.name == saving.picks.get("map")] or infos[:1]
    for info in infos if saving.folder else picked:
        yield from (f"{word}/{info.name}/{group.name}" for group in info.groups)


# Vector lengths ----------------------------------------------------------------------------------


def map_norms(subject: object, name: str, group: str) -> wire.MapNorms:
    """Return the vector lengths of the points of every head of a group."""
    atlas, _, heads = find_group(subject, name, group)
    lengths = [
        (
            np.linalg.norm(atlas.queries(head)[rows[0]], axis=1),
            np.linalg.norm(atlas.keys(head)[rows[1]], axis=1),
        )
        for head, rows in ((head, map_rows(atlas, heads, head)) for head in heads.heads)
    ]
    return make_norms(name, group, lengths)


def make_norms(
    name: str, group: str, lengths: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]
) -> wire.MapNorms:
    """Pack the lengths of queries and keys of each head in 255ths of their ranges."""
    low = np.array([[side.min() for side in head] for head in lengths], np.float32)
    high = np.array([[side.max() for side in head] for head in lengths], np.float32)
    wide = np.where(high > low, high - low, 1)
    values = [
        np.concatenate([(side - low[h, s]) / wide[h, s] for s, side in enumerate(head)])
        for h, head in enumerate(lengths)
    ]
    packed = np.rint(np.stack(values) * 255).astype(np.uint8)
    return wire.MapNorms(name, group, len(lengths[0][0]), packed, low, high)


# Finding maps and rows ---------------------------------------------------------------------------


def find_group(subject: object, name: str, group: str) -> tuple[StoredAtlas, Map, MapHeads]:
    """Find a map and its group; return atlas, map and group. A PickError says what there is."""
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention has no queries and keys, so it has no maps; capture them")
    layout = read_map(find_map(subject, name))
    if group not in layout.groups:
        known = ", ".join(layout.groups)
        raise PickError(f"the map {name} has no group {group[:40]!r}; there is {known}")
    heads = layout.groups[group]
    _check_fits(subject, name, heads)
    return subject, layout, heads


def find_map(atlas: StoredAtlas, name: str) -> Path:
    """Find the file of a map; a PickError says which there are."""
    files = map_files(atlas)
    if name not in files:
        known = ", ".join(files) or "none yet"
        raise PickError(f"no map is named {name[:40]!r}; there is {known}")
    return files[name]


def _check_fits(atlas: StoredAtlas, name: str, group: MapHeads) -> None:
    known = set(atlas.heads()["head"])
    tokens = np.concatenate([group.query_tokens, group.key_tokens])
    inside = (tokens >= 0) & (tokens < atlas.manifest.tokens)
    if not set(group.heads) <= known or not inside.all():
        raise StoreError(f"the map {name} is of another atlas; compute it again for this one")


def map_rows(atlas: StoredAtlas, group: MapHeads, head: str) -> tuple[Numbers, Numbers]:
    """Return the rows of a map's tokens among all queries, and among all keys, of a head."""
    layer = atlas.layer_of(head)
    rows = [
        np.searchsorted(atlas.vector_tokens(stream)["token"].to_numpy(), tokens)
        for stream, tokens in ((layer.queries, group.query_tokens), (layer.keys, group.key_tokens))
    ]
    return rows[0].astype(np.int64), rows[1].astype(np.int64)
