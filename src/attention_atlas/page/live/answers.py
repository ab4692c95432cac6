"""A path goes in, one packet comes out.

about · input/0 · edges/0/encoder · rows/0/L5H1 · rows/0/L5H1/0-99 · layer/0/encoder/5 ·
vectors/0/L5H1 · picture/0/0 · gaze/0/encoder/5/mean · progress, and those of maps (`maps.py`).
Server, notebook and saved file differ only in how the bytes travel. Here nothing knows which; and
nothing here opens a file by a name that came from outside.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.about import about, records
from attention_atlas.page.answers.added import map_extra
from attention_atlas.page.answers.comparison import comparison, reaction
from attention_atlas.page.answers.edges import make_edges
from attention_atlas.page.answers.gaze import make_gaze
from attention_atlas.page.answers.heads import alike_heads, head_card, head_scores
from attention_atlas.page.answers.maps import (
    map_norms,
    map_places,
    map_points,
)
from attention_atlas.page.answers.mean_pattern import mean_pattern
from attention_atlas.page.answers.pictures import has_pictures, picture, picture_infos, thumbs
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.answers.tokens import shown, visible
from attention_atlas.page.live.deeds import do
from attention_atlas.page.live.workshop import Workshop
from attention_atlas.page.wire import wire
from attention_atlas.store.manifest import Tower
from attention_atlas.store.patch_places import places
from attention_atlas.store.reader import StoredAtlas

LARGEST = 4_000_000  # weights in one packet of exact rows
KEPT = 64_000_000  # bytes of packets kept for the next time they are asked for
_RANGE = re.compile(r"(\d+)-(\d+)")
_LONGEST = 200


class Answers:
    """Packets of one subject, the recent ones kept.

    With a workshop its page may have things done; `others` are what the same server shows besides,
    and `beside` the very subjects, for comparing.
    """

    def __init__(
        self,
        subject: Subject,
        workshop: Workshop | None = None,
        others: Sequence[wire.Neighbour] = (),
        beside: Sequence[Subject] = (),
    ):
        self.subject, self.workshop, self.others = subject, workshop, others
        self.beside = tuple(zip(others, beside, strict=True)) if beside else ()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()
        if workshop is not None:
            workshop.finished = self._forget

    def packet(self, path: str) -> tuple[bytes, bool]:
        """The packet of a path, and whether it is what was asked for or a Failure."""
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path], True
        try:
            packet = wire.pack(self.answer(path))
        except AtlasError as problem:
            return wire.pack(wire.Failure(str(problem))), False
        if path not in CHANGING:
            self._keep(path, packet)
        return packet, True

    def deed(self, word: str, body: object) -> tuple[bytes, bool]:
        """What a page asks to have done, and whether it was or is refused."""
        try:
            return wire.pack(do(self.workshop, word, body)), True
        except AtlasError as problem:
            return wire.pack(wire.Failure(str(problem))), False

    def answer(self, path: str) -> Any:
        """The dataclass of a path; a PickError says what there is instead."""
        if len(path) > _LONGEST:
            raise PickError(f"a path of {len(path)} letters is too long; {_LONGEST} is the most")
        if path in CHANGING:
            return CHANGING[path](self)
        word, *rest = path.split("/")
        asked = ASKED.get(word) or BESIDE.get(word)
        if asked is None and word not in CHANGING:
            there = ", ".join([*CHANGING, *ASKED, *BESIDE])
            raise PickError(f"nothing is called {word[:40]!r}; there is {there}")
        if asked is None or not asked[0] <= len(rest) <= asked[1]:
            raise PickError(f"{path[:80]!r} does not say what it asks for; see {word} in wire.py")
        if word in BESIDE:
            return asked[2](self.subject, self.beside, *rest)
        return asked[2](self.subject, *rest)

    def about(self) -> wire.About:
        plain, shop = about(self.subject), self.workshop
        if shop is None:
            return replace(plain, atlases=self.others)
        return replace(
            plain, atlases=self.others, can_compute=shop.can_compute, estimates=shop.estimates(),
            can_add=shop.model is not None,
            added=tuple(range(shop.atlas.manifest.inputs, len(shop.atlas))),
        )  # fmt: skip

    def progress(self) -> wire.Progress:
        return self.workshop.progress() if self.workshop else wire.Progress("idle")

    def _keep(self, path: str, packet: bytes) -> None:
        with self._lock:
            self._kept[path] = packet
            while sum(map(len, self._kept.values())) > KEPT and len(self._kept) > 1:
                self._kept.popitem(last=False)

    def _forget(self) -> None:
        """A map may have been made anew."""
        with self._lock:
            self._kept.clear()


# One input ---------------------------------------------------------------------------------------


def input_info(subject: Subject, number: str) -> wire.InputInfo:
    i = _input(subject, number)
    row = records(subject.inputs().iloc[i : i + 1])[0]
    frame = subject.tokens(i)
    prettify = getattr(subject, "prettify", True)
    streams = [
        _stream(str(name), frame[frame["stream"] == name], int(row["prompt"]), prettify)
        for name in frame["stream"].unique()
    ]
    infos = picture_infos(subject, i) if isinstance(subject, StoredAtlas) else []
    return wire.InputInfo(
        i, row.get("text") or "", row.get("second"), int(row["boundary"]), streams, infos
    )


def _stream(name: str, frame: pd.DataFrame, prompt: int, prettify: bool) -> wire.Stream:
    raw, special = frame["text"].tolist(), frame["special"].tolist()
    texts = shown(raw, special) if prettify else [visible(one) for one in raw]
    columns = [frame[c].tolist() for c in ("id", "segment", "word", "row", "column", "position")]
    tokens = [
        wire.TokenInfo(
            text, one, int(number), bool(flag), int(segment), int(word), int(row), int(column),
            0 <= prompt <= int(position),
        )
        for text, one, flag, number, segment, word, row, column, position in zip(
            texts, raw, special, *columns, strict=True
        )
    ]  # fmt: skip
    image, box = places(frame) or (None, None)
    return wire.Stream(name, tokens, image, box)


def one_picture(subject: Subject, number: str, image: str) -> wire.Picture:
    return picture(_with_pictures(subject), _input(subject, number), _count(image, "picture"))


def all_pictures(subject: Subject, level: str) -> wire.Thumbs:
    return thumbs(_with_pictures(subject), level)


def _with_pictures(subject: Subject) -> StoredAtlas:
    if not isinstance(subject, StoredAtlas) or not has_pictures(subject):
        raise PickError("these inputs have no pictures; capture some: aa.capture(model, folder)")
    return subject


# Its attention -----------------------------------------------------------------------------------


def edges(subject: Subject, number: str, name: str, layer: str | None = None) -> wire.Edges:
    i, tower = _input(subject, number), _tower(subject, name)
    layers = [one.layer for one in tower.layers]
    asked = layers if layer is None else [_count(layer, "layer")]
    return make_edges(subject, i, name, asked, of=len(layers))


def rows(subject: Subject, number: str, name: str, part: str | None = None) -> wire.Rows:
    i, head = _input(subject, number), str(Head.parse(name))
    n, m = _size(subject, i, head)
    first, last = (0, n - 1) if part is None else _range(part, n)
    if (last - first + 1) * m > LARGEST:
        raise PickError(
            f"{head} has {n} × {m} weights; ask for at most {LARGEST // m} rows at once, "
            f"as in rows/{i}/{head}/0-{LARGEST // m - 1}"
        )
    return wire.Rows(i, head, first, subject.weights(i, head, list(range(first, last + 1))))


def layer(subject: Subject, number: str, name: str, which: str) -> wire.LayerWeights:
    i, tower, found = _input(subject, number), _tower(subject, name), _count(which, "layer")
    there = tower.find(found)
    if there is not None:
        n, m = (_tokens(subject, i, stream) for stream in (there.queries, there.keys))
        if there.heads * n * m > LARGEST:
            raise PickError(
                f"layer {found} has {there.heads} × {n} × {m} weights, more than {LARGEST}; "
                "ask for the rows of one head"
            )
    return wire.LayerWeights(i, name, found, subject.layer_weights(i, found, name))


def gaze(subject: Subject, number: str, name: str, which: str, how: str) -> wire.Gaze:
    i, tower, found = _input(subject, number), _tower(subject, name), _count(which, "layer")
    there = tower.find(found)
    if there is None:
        layers = ", ".join(str(one.layer) for one in tower.layers)
        raise PickError(f"{name} has no layer {found}; it has {layers}")
    return make_gaze(subject, i, tower, there, how)


def vectors(subject: Subject, number: str, name: str) -> wire.Vectors:
    i, head = _input(subject, number), Head.parse(name)
    if not isinstance(subject, StoredAtlas):
        raise PickError(
            "plain attention has no queries and keys; capture the model for them: "
            "aa.neuron_view(aa.capture(model, text))"
        )
    query, key = subject.queries(head, i), subject.keys(head, i)
    terms = subject.terms(head, i)
    mask, seen = _mask(terms.seen)
    has_value = "value" in subject.manifest.keep
    return wire.Vectors(
        i, str(head), terms.scale, terms.softcap, terms.sink, mask, _sharing(subject, head),
        query, key, subject.values(head, i) if has_value else None, _short(terms.added), seen,
    )  # fmt: skip


def _mask(seen: npt.NDArray[np.bool_]) -> tuple[Any, npt.NDArray[np.uint8] | None]:
    if seen.all():
        return "full", None
    if seen.shape[0] == seen.shape[1] and (seen == np.tri(len(seen), dtype=bool)).all():
        return "causal", None
    return "given", seen.astype(np.uint8)


def _short(added: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float32] | None:
    """One row stands for all where all are equal."""
    return added[:1] if added is not None and (added == added[:1]).all() else added


def _sharing(atlas: StoredAtlas, head: Head) -> list[str]:
    table = atlas.heads()
    mine = table[table["head"] == str(head)].iloc[0]
    alike = (table[["tower", "layer", "group"]] == mine[["tower", "layer", "group"]]).all(axis=1)
    return [str(name) for name in table[alike]["head"]]


# How things are found ----------------------------------------------------------------------------


def _input(subject: Subject, number: str) -> int:
    i = _count(number, "input")
    if i >= len(subject):
        raise PickError(f"there is no input {i}; there are 0 to {len(subject) - 1}")
    return i


def _count(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PickError(f"{text[:40]!r} is no {what}; give its number, from 0")
    return int(text)


def _tower(subject: Subject, name: str) -> Tower:
    found = next((tower for tower in subject.towers if tower.name == name), None)
    if found is None:
        there = ", ".join(tower.name for tower in subject.towers)
        raise PickError(f"no tower is named {name[:40]!r}; there is {there}")
    return found


def _size(subject: Subject, i: int, name: str) -> tuple[int, int]:
    """Queries and keys of a head."""
    head = Head.parse(name)
    tower = _tower(subject, head.tower) if head.tower else subject.towers[0]
    found = tower.find(head.layer)
    if found is None or head.head >= found.heads or (not head.tower and len(subject.towers) > 1):
        subject.weights(i, head, [0])  # says what there is
        raise PickError(f"there is no {head}")
    return _tokens(subject, i, found.queries), _tokens(subject, i, found.keys)


def _tokens(subject: Subject, i: int, stream: str) -> int:
    return len(subject.tokens(i, stream))


def _range(part: str, n: int) -> tuple[int, int]:
    found = _RANGE.fullmatch(part)
    if not found or len(part) > 20 or not int(found[1]) <= int(found[2]) < n:
        raise PickError(f"{part[:40]!r} is no range of rows; give first-last within 0-{n - 1}")
    return int(found[1]), int(found[2])


# First word of a path → how many words follow, at least and at most, and who answers.
ASKED: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "input": (1, 1, input_info),
    "edges": (2, 3, edges),
    "rows": (2, 3, rows),
    "layer": (3, 3, layer),
    "vectors": (2, 2, vectors),
    "map": (2, 2, map_places),
    "points": (2, 2, map_points),
    "norms": (2, 2, map_norms),
    "extra": (3, 3, map_extra),
    "mean": (1, 1, mean_pattern),
    "heads": (0, 0, head_scores),
    "alike": (0, 0, alike_heads),
    "card": (1, 1, head_card),
    "picture": (2, 2, one_picture),
    "thumbs": (1, 1, all_pictures),
    "gaze": (4, 4, gaze),
}
# The same, of several subjects.
BESIDE: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "compare": (1, 1, comparison),
    "reaction": (2, 2, reaction),
}
# What is not the same each time; never kept.
CHANGING: dict[str, Callable[[Answers], Any]] = {
    "about": Answers.about,
    "progress": Answers.progress,
}
