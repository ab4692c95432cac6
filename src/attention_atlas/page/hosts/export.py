"""One HTML file with everything inside, or a folder for any web host.

Both carry the very packets that the server would answer. A file holds the edge lists; whole rows
and vectors come along when asked for (`exact`), vectors also where the neuron view was asked for.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from attention_atlas.measure.run import known_scores, measure_atlas
from attention_atlas.names.errors import InputError, StoreError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.about import about
from attention_atlas.page.answers.comparison import compared
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.export_pictures import gaze_paths, gazed_inputs, sheet_paths
from attention_atlas.page.hosts.static_files import SERVED, static
from attention_atlas.page.live.answers import LARGEST, Answers
from attention_atlas.page.wire import wire
from attention_atlas.store.files import write_whole
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

_PLACE, _MORE = b"<!--ATLAS-DATA-->", b"<!--ATLAS-MORE-->"
SOON = 1_000_000  # bytes of edges beyond which the layer to be shown first comes first, by itself
EDGE_BYTES = 16_000_000  # of a saved map; sentences beyond are told apart, but not drawn
MOST_FILES = 2_000  # of vectors in a folder, unless all was asked for
_VECTOR_BYTES = 8_000_000  # of a saved neuron view; beyond, only the picked layer comes along


def save_page(
    path: Path,
    subject: Subject,
    picks: Mapping[str, Any],
    *,
    exact: bool = False,
    inputs: Sequence[int] | None = None,
) -> None:
    """Write one HTML file that needs nothing else."""
    pieces = page_pieces(subject, picks, exact=exact, inputs=inputs)

    def write(part: Path) -> None:
        with part.open("wb") as file:
            file.writelines(pieces)

    write_whole(path, write)


def page_pieces(
    subject: Subject,
    picks: Mapping[str, Any],
    *,
    exact: bool = False,
    inputs: Sequence[int] | None = None,
) -> Iterator[bytes]:
    """The bytes of the file, a packet at a time."""
    answers = Answers(subject)
    few = picks.get("tab") == "map" and not exact
    packets = _packets(answers, _paths(subject, picks, exact, inputs), few)
    yield from _filled(picks, packets, _packets(answers, _opening(subject, picks, inputs)))


def save_comparison(path: Path, atlases: Sequence[StoredAtlas]) -> None:
    """Write one HTML file that sets models side by side; the first one's heads can be opened."""
    first, rest = atlases[0], atlases[1:]
    others = [wire.Neighbour("", one.manifest.model, one.manifest.inputs) for one in rest]
    answers = Answers(first, None, others, rest)
    which = ",".join(map(str, range(len(rest))))
    made = compared(atlases, [""] * len(atlases))
    measure_atlas(first, progress=False)
    carried = [int(number) for number in made.inputs[:, 0]]
    picks = {"tab": "heads", "versus": list(range(len(rest))), "input": carried[0]}
    packets = [
        ("about", wire.pack(_only(answers.about(), carried))),
        (f"compare/{which}", wire.pack(made)),
        *_packets(answers, _measured(first)),
        *_packets(answers, (f"reaction/{which}/{at}" for at in range(len(carried))), True),
        *_packets(answers, (one for one in _overview(first, carried) if one != "about"), True),
    ]
    write_whole(path, lambda part: _put(b"".join(_filled(picks, packets)), part))


def _only(told: wire.About, numbers: Sequence[int]) -> wire.About:
    """Without inputs that do not come along."""
    return replace(told, inputs=[one for one in told.inputs if one.number in set(numbers)])


def _packets(
    answers: Answers, paths: Iterable[str], few: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Paths and their packets; with `few`, pictures of attention only as far as there is room."""
    used = 0
    for name in paths:
        packet = wire.pack(answers.answer(name))
        if name.startswith(("edges/", "reaction/")):
            used += len(packet)
            if few and used > EDGE_BYTES:
                continue
        yield name, packet


def _filled(
    picks: Mapping[str, Any],
    packets: Iterable[tuple[str, bytes]],
    soon: Iterable[tuple[str, bytes]] = (),
) -> Iterator[bytes]:
    """The template with its options and packets inside.

    Where some packets are enough to open with (`soon`), the page starts once those are read, and
    the others follow; else it starts when all are there.
    """
    before, place, rest = static("file.html").read_bytes().partition(_PLACE)
    script, more, after = rest.partition(_MORE)
    if not place or not more:
        raise StoreError("the template of saved pages is damaged; build it again: make web")
    tab = picks.get("tab", "text")
    options = {"tab": tab, "picks": dict(picks), "chrome": "file", "live": False}
    yield before
    yield _block('type="application/json" id="atlas-options"', _json(options))
    there = set()
    for name, packet in soon:
        yield _packet_block(name, packet)
        there.add(name)
    if there:
        yield script
    for name, packet in packets:
        if name not in there:
            yield _packet_block(name, packet)
    yield after if there else script + after


def _packet_block(name: str, packet: bytes) -> bytes:
    attributes = f'type="application/octet-stream;base64" data-path="{escape(name)}"'
    return _block(attributes, base64.b64encode(packet))


def _block(attributes: str, content: bytes) -> bytes:
    return b"<script " + attributes.encode() + b">" + content + b"</script>\n"


def _json(value: Any) -> bytes:
    """JSON in which nothing can end the script that it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").encode()


def save_folder(folder: Path, subject: Subject, *, exact: bool = False) -> None:
    """Write a folder that any web host can serve: the page, and its packets as files."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "api" / "about").exists():
        raise InputError(f"{folder} is not empty and no exported atlas; give another folder")
    answers = Answers(subject)
    write_whole(folder / "index.html", lambda part: _copy("page.html", part))
    for name in SERVED:
        write_whole(folder / name, lambda part, name=name: _copy(name, part))  # type: ignore[misc]
    for path in _folder_paths(subject, exact):
        packet = wire.pack(answers.answer(path))
        write_whole(folder / "api" / path, lambda part, packet=packet: _put(packet, part))  # type: ignore[misc]


def _copy(name: str, part: Path) -> None:
    part.write_bytes(static(name).read_bytes())


def _put(packet: bytes, part: Path) -> None:
    part.write_bytes(packet)


# What comes along --------------------------------------------------------------------------------


def _paths(
    subject: Subject, picks: Mapping[str, Any], exact: bool, inputs: Sequence[int] | None
) -> Iterator[str]:
    numbers = range(len(subject)) if inputs is None else inputs
    if picks.get("tab") == "image":
        numbers = gazed_inputs(subject, picks, numbers)
        yield from gaze_paths(subject, picks, numbers)
    if picks.get("tab") == "map":
        yield from map_paths(subject, picks.get("map", ""))
        yield from sheet_paths(subject)
    yield from _overview(subject, numbers)
    yield from _measured(subject)
    if exact:
        yield from _rows(subject, numbers)
    if exact or picks.get("view") == "neuron":
        yield from _vectors(subject, picks, exact, numbers)


def _opening(
    subject: Subject, picks: Mapping[str, Any], inputs: Sequence[int] | None
) -> Iterator[str]:
    """What the close-up of one layer opens with, where waiting for all layers would take long."""
    if picks.get("tab", "text") != "text" or picks.get("view") == "model":
        return
    i = picks.get("input", 0 if inputs is None else inputs[0])
    named = [tower for tower in subject.towers if tower.name == picks.get("tower")]
    tower = (named or list(subject.towers))[0]
    layer = tower.find(picks.get("layer", -1)) or tower.layers[0]
    n, m = (len(subject.tokens(i, stream)) for stream in (layer.queries, layer.keys))
    if 4 * n * m * layer.heads * len(tower.layers) > SOON:
        yield from ("about", f"input/{i}", f"edges/{i}/{tower.name}/{layer.layer}")


def _folder_paths(subject: Subject, exact: bool) -> Iterator[str]:
    numbers = range(len(subject))
    yield from map_paths(subject)
    yield from sheet_paths(subject)
    yield from gaze_paths(subject, {}, numbers)
    yield from _overview(subject, numbers)
    yield from _measured(subject)
    heads = sum(layer.heads for tower in subject.towers for layer in tower.layers)
    if exact or heads * len(subject) <= MOST_FILES:
        yield from _vectors(subject, {}, True, numbers)
    if exact:
        yield from _rows(subject, numbers)


def map_paths(subject: Subject, picked: str | None = None) -> Iterator[str]:
    """Everything of all maps, or of the picked one or the first where only one is to come along."""
    infos = about(subject).maps
    named = [one for one in infos if one.name == picked] or infos[:1]
    for info in named if picked is not None else infos:
        for group in info.groups:
            for what in ("map", "points", "norms"):
                yield f"{what}/{info.name}/{group.name}"
    if infos:
        for tower in subject.towers:
            for layer, head in _heads(tower):
                yield f"mean/{_name(subject, tower, layer, head)}"


def _overview(subject: Subject, numbers: Sequence[int]) -> Iterator[str]:
    yield "about"
    for i in numbers:
        yield f"input/{i}"
        for tower in subject.towers:
            yield f"edges/{i}/{tower.name}"


def _measured(subject: Subject) -> Iterator[str]:
    """What is known of heads, where someone asked for it before."""
    if not isinstance(subject, StoredAtlas) or known_scores(subject) is None:
        return
    yield from ("heads", "alike")
    for tower in subject.towers:
        for layer, head in _heads(tower):
            yield f"card/{_name(subject, tower, layer, head)}"


def _rows(subject: Subject, numbers: Sequence[int]) -> Iterator[str]:
    """Whole rows of every head, but for towers whose edges are not rounded anyway."""
    for i in numbers:
        for tower in subject.towers:
            if Answers(subject).answer(f"edges/{i}/{tower.name}").weight.dtype == np.float32:
                continue
            for layer, head in _heads(tower):
                n = len(subject.tokens(i, layer.queries))
                step = max(1, LARGEST // len(subject.tokens(i, layer.keys)))
                name = f"rows/{i}/{_name(subject, tower, layer, head)}"
                if n <= step:
                    yield name
                    continue
                yield from (f"{name}/{r}-{min(n, r + step) - 1}" for r in range(0, n, step))


def _vectors(
    subject: Subject, picks: Mapping[str, Any], every: bool, numbers: Sequence[int]
) -> Iterator[str]:
    if not isinstance(subject, StoredAtlas):
        return
    bare = subject
    known = [
        (tower, layer, head)
        for tower in bare.towers
        for layer, head in _heads(tower)
        if all(bare.has(what, layer.layer, tower.name) for what in ("query", "key"))
    ]
    if not every and _vector_bytes(bare, known, numbers) > _VECTOR_BYTES:
        tower_name = picks.get("tower") or bare.towers[0].name
        known = [
            one
            for one in known
            if one[0].name == tower_name and one[1].layer == picks.get("layer", 0)
        ]
    for i in numbers:
        for tower, layer, head in known:
            yield f"vectors/{i}/{_name(subject, tower, layer, head)}"


def _vector_bytes(
    atlas: StoredAtlas, known: Sequence[tuple[Tower, Layer, int]], numbers: Sequence[int]
) -> int:
    return sum(
        4 * (layer.width * (n + m) + layer.value_width * m)
        for i in numbers
        for n, m in [(len(atlas.tokens(i)), len(atlas.tokens(i)))]
        for _, layer, _ in known
    )


def _heads(tower: Tower) -> Iterator[tuple[Layer, int]]:
    for layer in tower.layers:
        for head in range(layer.heads):
            yield layer, head


def _name(subject: Subject, tower: Tower, layer: Layer, head: int) -> str:
    prefix = tower.name if len(subject.towers) > 1 else ""
    return str(Head(prefix, layer.layer, head))
