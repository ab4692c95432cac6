"""How is a page saved? As one HTML file that holds all its data, or as a folder for any web host.

Both hold the same packets that the server sends. A file holds the strongest links; `exact` adds
whole rows and vectors, and the neuron view adds vectors.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from attention_atlas.measure.run import measure_atlas
from attention_atlas.names.errors import InputError, StoreError
from attention_atlas.page.answers.comparison import compared
from attention_atlas.page.answers.find import is_long
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.saved_pictures import fits
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.session import Other
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.page_html import page_html
from attention_atlas.page.hosts.static_files import SERVED, static
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.about import About, Neighbour
from attention_atlas.page.wire.packing import pack
from attention_atlas.store.files import write_whole
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import check_folder

_PLACE, _MORE = b"<!--ATLAS-DATA-->", b"<!--ATLAS-MORE-->"
# Packets that the Text tab shows, and the code that a page with these alone leaves out.
_OF_TEXTS = {
    "about", "input", "edges", "rows", "vectors", "directions", "sinks", "logit", "overview",
}  # fmt: skip
_NOT_OF_TEXTS = re.compile(
    rb'<script type="text/plain" data-part="more">.*?</script>\s*', re.DOTALL
)
SOON = 1_000_000  # bytes of edges above which the layer that is shown first is written first
EDGE_BYTES = 16_000_000  # of a saved map; the links of further inputs are left out


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
    """Yield the bytes of the file, one packet at a time."""
    answers = Answers(subject)
    numbers = range(len(subject)) if inputs is None else inputs
    if picks.get("tab") == "image" and not fits(subject, numbers):
        numbers = [int(picks.get("input") or 0)]
    saving = Saving(subject, picks, numbers, exact)
    few = picks.get("tab") == "map" and not exact
    paths = list(_paths(saving))
    packets, soon = _packets(answers, paths, few), _packets(answers, _opening(saving))
    yield from _filled(picks, packets, soon, only_text=_is_only_text(paths, picks))


def _is_only_text(paths: Iterable[str], picks: Mapping[str, Any]) -> bool:
    """Tell whether a file holds attention of inputs alone, so that it needs the Text tab alone."""
    more = {path.split("/")[0] for path in paths} - _OF_TEXTS
    return not more and picks.get("tab", "text") == "text"


def save_comparison(
    path: Path, atlases: Sequence[StoredAtlas], without_sinks: bool = False
) -> None:
    """Write one HTML file that compares models; the heads of the first model can be opened.

    without_sinks  it opens on scores without the sinks of each input, and holds both
    """
    first, rest = atlases[0], atlases[1:]
    others = [
        Other(Neighbour("", atlas.manifest.model, atlas.manifest.inputs), atlas) for atlas in rest
    ]
    answers = Answers(first, None, others)
    which = ",".join(map(str, range(len(rest))))
    models = compared(atlases, [""] * len(atlases))
    measure_atlas(first, progress=False)
    carried = [int(number) for number in models.inputs[:, 0]]
    picks: dict[str, Any] = {
        "tab": "heads", "versus": list(range(len(rest))), "input": carried[0],
        "withoutSinks": without_sinks,
    }  # fmt: skip
    paths = [path for path in _paths(Saving(first, picks, carried)) if path != "about"]
    paths += [f"reaction/{which}/{place}" for place in range(len(carried))]
    packets = [
        ("about", pack(_only(answers.answer("about"), carried))),
        (f"compare/{which}", pack(models)),
        *_packets(answers, paths, True),
    ]
    if without_sinks:
        left = compared(atlases, [""] * len(atlases), without_sinks=True)
        packets.append((f"compare_without_sinks/{which}", pack(left)))
    write_whole(path, lambda part: _put(b"".join(_filled(picks, packets)), part))


def _only(about: About, numbers: Sequence[int]) -> About:
    """Return `about` with only the inputs of these numbers."""
    return replace(about, inputs=[line for line in about.inputs if line.number in set(numbers)])


def _packets(
    answers: Answers, paths: Iterable[str], few: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Yield paths and their packets; with `few`, edges only up to EDGE_BYTES."""
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
    only_text: bool = False,
) -> Iterator[bytes]:
    """Yield the template with its options and packets filled in.

    The page starts as soon as the packets of `soon` are read, and the others follow; without
    `soon` it starts when all are read.

    only_text  leave out the code of maps, scores and pictures
    """
    template = static("file.html").read_bytes()
    if only_text:
        template = _NOT_OF_TEXTS.sub(b"", template, 1)
    before, place, rest = template.partition(_PLACE)
    script, more, after = rest.partition(_MORE)
    if not place or not more:
        raise StoreError("the template of saved pages is damaged; build it again: make web")
    tab = picks.get("tab", "text")
    options = {"tab": tab, "picks": dict(picks), "chrome": "file", "live": False}
    yield before
    yield _block('type="application/json" id="atlas-options"', _json(options))
    written = set()
    for name, packet in soon:
        yield _packet_block(name, packet)
        written.add(name)
    if written:
        yield script
    for name, packet in packets:
        if name not in written:
            yield _packet_block(name, packet)
    yield after if written else script + after


def _packet_block(name: str, packet: bytes) -> bytes:
    attributes = f'type="application/octet-stream;base64" data-path="{escape(name)}"'
    return _block(attributes, base64.b64encode(packet))


def _block(attributes: str, content: bytes) -> bytes:
    return b"<script " + attributes.encode() + b">" + content + b"</script>\n"


def _json(value: Any) -> bytes:
    """Return a value as JSON that cannot close the script element around it."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").encode()


def save_folder(folder: Path, subject: Subject, *, exact: bool = False) -> None:
    """Write a folder that any web host can serve: the page, with its packets as files."""
    check_folder(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "api" / "about").exists():
        raise InputError(f"{folder} is not empty and is not an exported atlas; give another folder")
    answers = Answers(subject)
    write_whole(folder / "index.html", lambda part: _put(page_html(subject), part))
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
    """Yield the paths of all packets to save."""
    for row in PACKETS.values():
        yield from row.saved(saving)


def _opening(saving: Saving) -> Iterator[str]:
    """Yield the paths that the view of one layer needs first, if all layers would take long."""
    subject, picks = saving.subject, saving.picks
    if picks.get("tab", "text") != "text" or picks.get("view") == "model":
        return
    i = picks.get("input", saving.inputs[0])
    named = [tower for tower in subject.towers if tower.name == picks.get("tower")]
    tower = (named or list(subject.towers))[0]
    layer = tower.find(picks.get("layer", -1)) or tower.layers[0]
    n, m = (len(subject.tokens(i, stream)) for stream in (layer.queries, layer.keys))
    long = is_long(subject, i, tower)
    if not long and 4 * n * m * layer.heads * len(tower.layers) > SOON:
        yield from ("about", f"input/{i}", f"edges/{i}/{tower.name}/{layer.layer}")
