"""A packet is one row: the server, the saved page and the TypeScript follow from it."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from fastapi.testclient import TestClient

import attention_atlas as aa
from attention_atlas.page.answers.packet import Packet
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.hosts.export import save_folder
from attention_atlas.page.hosts.typescript import typescript
from attention_atlas.page.wire.packing import Array, Buffer, unpack


@dataclass(frozen=True)
class Lengths:
    """`lengths/{input}`: how many letters each token of an input has."""

    input: int
    letters: Annotated[Array, Buffer(("u4",), "N")]


def lengths(subject: Subject, number: int) -> Lengths:
    texts = subject.tokens(number)["text"]
    return Lengths(number, np.array([len(text) for text in texts], np.uint32))


def saved_lengths(saving: Saving) -> Iterator[str]:
    return (f"lengths/{number}" for number in saving.inputs)


@pytest.fixture
def new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Packet("lengths/{input:int}", Lengths, lengths, saved_lengths)
    monkeypatch.setitem(PACKETS, row.word, row)


@pytest.mark.usefixtures("new_row", "stand_in")
def test_a_new_packet_is_served_saved_and_typed_by_its_row_alone(
    gpt: aa.Atlas, tmp_path: Path
) -> None:
    expected = [len(text) for text in gpt.tokens(1)["text"]]
    client = TestClient(make_app([gpt]), base_url="http://127.0.0.1:8642")
    served = client.get("/api/lengths/1").content
    assert unpack(served)["letters"].tolist() == expected
    assert "'x' is no input" in unpack(client.get("/api/lengths/x").content)["error"]
    assert "give lengths/{input:int}" in unpack(client.get("/api/lengths").content)["error"]
    page = aa.head_view(gpt).save(tmp_path / "page.html").read_text(encoding="utf-8")
    block = re.search(r'data-path="lengths/1">(.*?)<', page)
    assert block is not None and base64.b64decode(block[1]) == served
    save_folder(tmp_path / "site", gpt)
    assert (tmp_path / "site" / "api" / "lengths" / "1").read_bytes() == served
    made = typescript()
    assert "  lengths: Lengths;\n" in made
    assert (
        "/** `lengths/{input}`: how many letters each token of an input has. */\n"
        "export interface Lengths {\n  input: number;\n  letters: Grid<Uint32Array>;\n}\n"
    ) in made


@pytest.mark.parametrize("row", PACKETS.values(), ids=PACKETS.keys())
def test_who_answers_takes_what_the_address_says(row: Packet) -> None:
    """The type that is declared is the type that is answered, and parts are read as it wants."""
    from inspect import Parameter, signature

    made = signature(row.answer, eval_str=True)
    assert made.return_annotation is row.type
    _, *parameters = made.parameters.values()
    kinds = [int if part["number"] else str for part in row.parts]
    parameters, rest = parameters[: len(kinds)], parameters[len(kinds) :]
    assert all(parameter.default is not Parameter.empty for parameter in rest)
    for part, kind, parameter in zip(row.parts, kinds, parameters, strict=True):
        assert parameter.annotation in (kind, kind | None)
        assert (parameter.default is None) == bool(part["optional"])
