"""`attention-atlas mcp` answers on stdin and stdout, as agents start it."""

import os
import sys

import pytest
from mcp import StdioServerParameters

import attention_atlas as aa
from attention_atlas.cli.app import main
from tests.page.agents.conftest import connected


@pytest.mark.full
def test_the_command_answers_over_stdio(mapped_gpt: aa.Atlas) -> None:
    arguments = ["-m", "attention_atlas", "mcp", str(mapped_gpt.path)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    with connected(server) as agent:
        assert agent.ask("about")["atlas"] == "gpt.atlas"
        assert "has no layer 50" in agent.refused("head", head="L50H0")


def test_a_folder_that_is_no_atlas_is_refused_before_it_answers(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "mcp", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and "is not an atlas" in capsys.readouterr().err
