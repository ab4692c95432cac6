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

from attention_atlas.measure.run import measure_atlas
from attention_atlas.names.errors import InputError, StoreError
from attention_atlas.page.answers.comparison import compared
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.saved_pictures import fits
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.session import Other
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.static_files import SERVED, static
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.about import About, Neighbour
from attention_atlas.page.wire.packing import pack
from attention_atlas.store.files import write_whole
from attention_atlas.store.reader import StoredAtlas

_PLACE, _MORE = b"<!--ATLAS-DATA-->", b"<!--ATLAS-MORE-->"
SOON = 1_000_000  # bytes of edges beyond which the layer to be shown first comes first, by itself
EDGE_BYTES = 16_000_000  # of a saved map; sentences beyond are told apart, but not drawn


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
    numbers = range(len(subject)) if inputs is None else inputs
    if picks.get("tab") == "image" and not fits(subject, numbers):
        numbers = [int(picks.get("input") or 0)]
    saving = Saving(subject, picks, numbers, exact)
    few = picks.get("tab") == "map" and not exact
    packets = _packets(answers, _paths(saving), few)
    yield from _filled(picks, packets, _packets(answers, _opening(saving)))


def save_comparison(path: Path, atlases: Sequence[StoredAtlas]) -> None:
    """Write one HTML file that sets models side by side; the first one's heads can be opened."""
    first, rest = atlases[0], atlases[1:]
    others = [Other(Neighbour("", one.manifest.model, one.manifest.inputs), one) for one in rest]
    answers = Answers(first, None, others)
    which = ",".join(map(str, range(len(rest))))
    made = compared(atlases, [""] * len(atlases))
    measure_atlas(first, progress=False)
    carried = [int(number) for number in made.inputs[:, 0]]
    picks = {"tab": "heads", "versus": list(range(len(rest))), "input": carried[0]}
    paths = [path for path in _paths(Saving(first, picks, carried)) if path != "about"]
    paths += [f"reaction/{which}/{at}" for at in range(len(carried))]
    packets = [
        ("about", pack(_only(answers.answer("about"), carried))),
        (f"compare/{which}", pack(made)),
        *_packets(answers, paths, True),
    ]
    write_whole(path, lambda part: _put(b"".join(_filled(picks, packets)), part))


def _only(told: About, numbers: Sequence[int]) -> About:
    """Without inputs that do not come along."""
    return replace(told, inputs=[one for one in told.inputs if one.number in set(numbers)])


def _packets(
    answers: Answers, paths: Iterable[str], few: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Paths and their packets; with `few`, pictures of attention only as far as there is room."""
    used = 0
    for name in paths:
        packet = pack(answers.answer(name))
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
    for path in _paths(Saving(subject, {}, range(len(subject)), exact, folder=True)):
        packet = pack(answers.answer(path))
        write_whole(folder / "api" / path, lambda part, packet=packet: _put(packet, part))  # type: ignore[misc]


def _copy(name: str, part: Path) -> None:
    part.write_bytes(static(name).read_bytes())


def _put(packet: bytes, part: Path) -> None:
    part.write_bytes(packet)


def _paths(saving: Saving) -> Iterator[str]:
    """Give the paths of all packets that come along."""
    for row in PACKETS.values():
        yield from row.saved(saving)


def _opening(saving: Saving) -> Iterator[str]:
    """What the close-up of one layer opens with, where waiting for all layers would take long."""
    subject, picks = saving.subject, saving.picks
    if picks.get("tab", "text") != "text" or picks.get("view") == "model":
        return
    i = picks.get("input", saving.inputs[0])
    named = [tower for tower in subject.towers if tower.name == picks.get("tower")]
    tower = (named or list(subject.towers))[0]
    layer = tower.find(picks.get("layer", -1)) or tower.layers[0]
    n, m = (len(subject.tokens(i, stream)) for stream in (layer.queries, layer.keys))
    if 4 * n * m * layer.heads * len(tower.layers) > SOON:
        yield from ("about", f"input/{i}", f"edges/{i}/{tower.name}/{layer.layer}")
