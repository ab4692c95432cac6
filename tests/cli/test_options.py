"""Options that travel together are declared once and offered by every command that needs them."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import transformers
from typer.testing import CliRunner

from attention_atlas.cli.app import COMMANDS, app
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import declared, keywords
from attention_atlas.record.write.options import Capturing, Reading

LOADERS = ("check", "capture", "build", "measure", "label", "view", "serve")


def offered(command: str) -> str:
    return CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output


@pytest.mark.parametrize("command", LOADERS)
def test_every_command_that_loads_a_model_offers_all_that_loading_takes(command: str) -> None:
    told = offered(command)
    names = [f"--{one.name.replace('_', '-')}" for one in declared(Loading)]
    assert [name for name in names if name not in told] == []


def test_capture_and_build_offer_the_same() -> None:
    for kind in (Reading, Capturing):
        for one in declared(kind):
            name = f"--{one.name.replace('_', '-')}"
            assert name in offered("capture") and name in offered("build"), name


def test_every_command_has_one_file_of_its_name() -> None:
    for command in COMMANDS:
        assert command.__module__ == f"attention_atlas.cli.{command.__name__}"


def test_a_revision_of_the_hub_reaches_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def from_pretrained(place: Any, **where: Any) -> Any:
        asked.update(where)
        raise OSError("not to be reached")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", from_pretrained)
    done = CliRunner().invoke(app, ["check", "some/model", "--revision", "step-1000"])
    assert done.exit_code != 0 and asked["revision"] == "step-1000"


def test_what_is_kept_reaches_the_atlas(tmp_path: Path) -> None:
    import attention_atlas as aa

    folder = tmp_path / "x.atlas"
    words = ["capture", "builtin:gpt", "One two.", "-o", str(folder), "--keep", "query"]
    done = CliRunner().invoke(app, [*words, "--keep", "key"])
    assert done.exit_code == 0, done.output
    assert aa.open(folder).manifest.keep == ("query", "key")


def test_an_options_object_is_its_fields_as_keywords() -> None:
    assert keywords(Loading(device="cpu"))["device"] == "cpu"
    assert list(keywords(Reading())) == [one.name for one in fields(Reading)]
