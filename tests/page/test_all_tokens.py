"""All tokens of a head on its map: placed in the background, then told of by packets."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.wire.packing import unpack
from tests import planted
from tests.token_columns import token_list

HEAD, MAP = "L0H1", "pca-2d"


@pytest.fixture
def atlas(tmp_path: Path) -> aa.Atlas:
    """An atlas whose map has 40 of its tokens."""
    texts = planted.sentences(12)
    atlas = planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts))
    atlas.layout("pca", tokens=40, progress=False)
    return atlas


def told(answer: tuple[bytes, bool]) -> Any:
    packet, done = answer
    content = unpack(packet)
    assert done, content
    return content


def placed(answers: Answers) -> Any:
    told(answers.perform("place", {"map": MAP, "head": HEAD}))
    end = time.monotonic() + 120
    while (now := told(answers.packet("progress")))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    return now


def test_all_tokens_are_placed_when_asked_and_not_before(atlas: aa.Atlas) -> None:
    (answers,) = make_answers([atlas])
    tokens = len(atlas.tokens())
    info = told(answers.packet(f"all/{MAP}/{HEAD}"))
    assert (info["queries"], info["keys"], info["placed"], info["can_place"]) == (
        tokens, tokens, False, True,
    )  # fmt: skip
    assert info["seconds"] > 0
    packet, done = answers.packet(f"all_places/{MAP}/{HEAD}")
    assert not done and "--all-tokens --head L0H1" in unpack(packet)["error"]

    end = placed(answers)
    assert (end["state"], end["head"], end["done"]) == ("done", HEAD, 2 * tokens)
    assert told(answers.packet(f"all/{MAP}/{HEAD}"))["placed"]
    points = told(answers.packet(f"all_places/{MAP}/{HEAD}"))
    assert points["places"].shape == (2 * tokens, 2) and points["queries"] == tokens

    # The tokens of the sample lie where the map has them, to half a step of either rounding.
    group = next(iter(atlas.layout("pca", tokens=40).groups.values()))
    sample = np.concatenate([group.query_tokens, tokens + group.key_tokens])
    wide = points["box"][1] - points["box"][0]
    at = points["box"][0] + points["places"][sample] / 65535 * wide
    own = group.unpacked()[group.heads.index(HEAD)]
    assert (np.abs(at - own) <= wide / 65535).all()


def test_tokens_and_columns_are_those_of_the_atlas(atlas: aa.Atlas) -> None:
    (answers,) = make_answers([atlas])
    info = told(answers.packet(f"all/{MAP}/{HEAD}"))
    tokens = told(answers.packet(f"all_tokens/{info['streams'][0]}"))
    table = atlas.tokens()
    starts = tokens["starts"]
    for number in range(len(atlas)):
        own = table[table["input"] == number]
        assert starts[number + 1] - starts[number] == len(own)
        texts = [tokens["texts"][at] for at in tokens["text"][starts[number] : starts[number + 1]]]
        shown = token_list(told(answers.packet(f"input/{number}"))["streams"][0])
        assert texts == [token["text"] for token in shown]

    group = told(answers.packet("about"))["maps"][0]["groups"][0]["name"]
    sample = {
        column["name"]: column
        for column in told(answers.packet(f"points/{MAP}/{group}"))["columns"]
    }
    for name, of_sample in sample.items():
        column = told(answers.packet(f"all_column/{MAP}/{group}/{name}"))["column"]
        assert len(column["values"]) == len(table)  # queries and keys are of one stream
        for side in ("low", "high", "names", "label", "kind"):
            assert column.get(side) == of_sample.get(side)
        own = told(answers.packet(f"points/{MAP}/{group}"))["token"]
        assert (column["values"][own] == of_sample["values"]).all()


def test_what_there_is_not_is_said(atlas: aa.Atlas) -> None:
    (answers,) = make_answers([atlas])

    def refused(path: str) -> str:
        packet, done = answers.packet(path)
        assert not done
        return str(unpack(packet)["error"])

    assert "no map is named 'tsne-2d'; there is pca-2d" in refused(f"all/tsne-2d/{HEAD}")
    assert "has no head 'L9H9'" in refused(f"all/{MAP}/L9H9")
    assert "no column is named 'mood'" in refused(
        f"all_column/{MAP}/{told(answers.packet('about'))['maps'][0]['groups'][0]['name']}/mood"
    )
    packet, done = answers.perform("place", {"map": "umap-3d", "head": HEAD})
    assert not done and "no map is named" in unpack(packet)["error"]


def test_a_head_that_is_not_there_fails_with_a_sentence(atlas: aa.Atlas) -> None:
    (answers,) = make_answers([atlas])
    told(answers.perform("place", {"map": MAP, "head": "L9H9"}))
    end = time.monotonic() + 60
    while (now := told(answers.packet("progress")))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert now["state"] == "failed" and "no head 'L9H9'" in now["error"]
