"""Where are all tokens of a head, and what are they? all/umap-2d/L5H1 · all_places/umap-2d/L5H1 ·
all_tokens/text · all_column/umap-2d/encoder/mod5
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.layout.estimate import estimate_placing
from attention_atlas.names.errors import PickError
from attention_atlas.names.token_text import shown_by_stream
from attention_atlas.page.answers.colours import Points, colour_columns
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.maps import (
    Numbers,
    find_group,
    find_map,
    map_files,
    map_points,
)
from attention_atlas.page.answers.session import Session
from attention_atlas.page.wire import all_tokens as wire
from attention_atlas.page.wire.maps import NameColumn, NumberColumn
from attention_atlas.store.all_places import all_places_path, is_placed, map_digest, read_all_places
from attention_atlas.store.maps import describe
from attention_atlas.store.reader import StoredAtlas


def all_info(session: Session, name: str, head: str) -> wire.AllInfo:
    """Return how many tokens a head has and whether they are on a map."""
    atlas, _, group = find_group(session.subject, name, _group_of(session.subject, name, head))
    layer = atlas.layer_of(head)
    counts = [len(atlas.vector_tokens(stream)) for stream in (layer.queries, layer.keys)]
    path = all_places_path(map_files(atlas)[name], head)
    placed = is_placed(path, map_digest(group, head))
    offers = {} if session.work is None else session.work.offers()
    sample = len(group.query_tokens) + len(group.key_tokens)
    return wire.AllInfo(
        counts[0], counts[1], placed, bool(offers.get("can_compute")) and not placed,
        round(estimate_placing(sum(counts), sample), 1), (layer.queries, layer.keys),
    )  # fmt: skip


def all_points(subject: object, name: str, head: str) -> wire.AllPoints:
    """Return the places of all queries of a head, then of all its keys."""
    atlas, _, group = find_group(subject, name, _group_of(subject, name, head))
    path = all_places_path(map_files(atlas)[name], head)
    if not is_placed(path, map_digest(group, head)):
        raise PickError(
            f"{head} has a sample of its tokens on {name}; place all: attention-atlas layout "
            f"{atlas.path.name} --all-tokens --head {head}"
        )
    stored = read_all_places(path)
    queries = len(atlas.vector_tokens(atlas.layer_of(head).queries))
    return wire.AllPoints(queries, stored.places, stored.box)


def all_tokens(subject: object, stream: str) -> wire.AllTokens:
    """Return where each input of a stream starts, and the text of each token."""
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention has no maps; capture the model: aa.capture(…)")
    stream_tokens = _stream_tokens(_base(subject), stream)
    shown, index = np.unique(stream_tokens.shown, return_inverse=True)
    small = np.uint16 if len(shown) < 2**16 else np.uint32
    text = index[stream_tokens.which].astype(small)
    return wire.AllTokens(stream_tokens.starts.astype(np.uint32), shown.tolist(), text)


def all_column(subject: object, name: str, group: str, column: str) -> wire.AllColumn:
    """Return one column of all queries, then of all keys, in the range of the map's column."""
    atlas, _, _ = find_group(subject, name, group)
    when = find_map(atlas, name).stat().st_mtime_ns
    columns = {known.name: known for known in _columns(_base(atlas), name, group, when)}
    if column not in columns:
        known = ", ".join(columns)
        raise PickError(f"no column is named {column[:40]!r}; there is {known}")
    return wire.AllColumn(columns[column])


@lru_cache(maxsize=2)
def _columns(
    atlas: StoredAtlas, name: str, group: str, when: int
) -> "Sequence[NumberColumn | NameColumn]":
    """Make all columns of a map written `when` at once; a column alone costs nearly as much."""
    _, _, heads = find_group(atlas, name, group)
    layer = atlas.layer_of(heads.heads[0])
    like = map_points(atlas, name, group).columns
    streams = list(dict.fromkeys([layer.queries, layer.keys]))
    tokens = [_stream_tokens(atlas, stream) for stream in streams]
    points = Points(
        pd.concat([of_stream.frame for of_stream in tokens]),
        np.concatenate([of_stream.shown[of_stream.which] for of_stream in tokens]),
        atlas.inputs(),
        np.concatenate([of_stream.lengths for of_stream in tokens]),
        atlas.tokens()["text"].value_counts(),
    )
    return colour_columns(points, like)


@dataclass(frozen=True)
class StreamTokens:
    """All tokens of a stream; equal texts are read once, since a million take long."""

    frame: pd.DataFrame
    starts: Numbers  # (inputs + 1,) the first token of each input
    shown: npt.NDArray[Any]  # distinct texts as people read them
    which: Numbers  # of `shown`, for each token

    @property
    def lengths(self) -> Numbers:
        """Count, for each token, the tokens of its input."""
        return np.asarray(np.diff(self.starts)[self.frame["input"].to_numpy()])


@lru_cache(maxsize=2)
def _stream_tokens(atlas: StoredAtlas, stream: str) -> StreamTokens:
    frame = atlas.vector_tokens(stream)
    raw, texts = pd.factorize(frame["text"].to_numpy(object))
    which, pairs = pd.factorize(2 * raw + frame["special"].to_numpy(np.int64))
    shown = shown_by_stream(
        [stream] * len(pairs), texts[pairs // 2].tolist(), (pairs % 2 == 1).tolist()
    )
    starts = np.searchsorted(frame["input"].to_numpy(), np.arange(atlas.manifest.inputs + 1))
    frame = frame.assign(text=texts[raw])
    return StreamTokens(frame, starts, np.array(shown, object), which)


def _base(atlas: StoredAtlas) -> StoredAtlas:
    return atlas.base if isinstance(atlas, Grown) else atlas


def _group_of(subject: object, name: str, head: str) -> str:
    """Find the group of a head on a map; a PickError says what there is."""
    files = map_files(subject) if isinstance(subject, StoredAtlas) else {}
    if name in files:
        for group, (heads, _, _) in describe(files[name])[1].items():
            if head in heads:
                return group
        raise PickError(f"the map {name} has no head {head[:40]!r}; write it as in L5H1")
    return ""  # find_group says what there is
