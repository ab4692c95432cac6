"""Does the edit receipt catch edits that are not what was asked for, and is it printed?"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from attention_atlas.cli.app import app
from attention_atlas.edits.ablate import Ablate
from attention_atlas.edits.anatomy import Anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.bind import bind
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.receipt import edit_receipt
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.load import Loaded
from tests.edits.shapes import split
from tests.record.zoo import ZOO

NO_SAY = "an ablated head has no say"
PROJECTIONS = {"GPT-2": "attn.c_proj", "Llama": "self_attn.o_proj"}


def loaded(name: str) -> tuple[Loaded, list[Any]]:
    items = ZOO[name].feed(torch.Generator().manual_seed(1))
    return Loaded(ZOO[name].build(), None, name, None), items


@pytest.mark.parametrize("name", PROJECTIONS)
@pytest.mark.parametrize("where", ["projection", "module"])
@pytest.mark.filterwarnings("ignore")
def test_an_ablation_after_the_projection_is_caught(name: str, where: str) -> None:
    """As one public tool had it: the layer's output, already mixed, is cut into "heads"."""
    path = PROJECTIONS[name] if where == "projection" else PROJECTIONS[name].partition(".")[0]

    @contextmanager
    def wrongly(loaded: Loaded, edits: Sequence[Edit], known: Anatomy) -> Iterator[Any]:
        right = [edit for edit in edits if not isinstance(edit, Ablate) or edit.by != "zero"]
        hooks = []
        for bound in bind(loaded, [edit for edit in edits if edit not in right], known):
            for layer, heads in bound.heads.items():
                module = loaded.model.get_submodule(layer.module)
                if where == "projection":
                    module = module.get_submodule(path.partition(".")[2])
                hooks.append(
                    module.register_forward_hook(_cutting(layer.heads, heads, bound.edit.inputs))
                )
        try:
            with editing(loaded, right, known) as stack:
                yield stack
        finally:
            for hook in hooks:
                hook.remove()

    model, items = loaded(name)
    assert edit_receipt(model, items).holds
    receipt = edit_receipt(model, items, wrongly)
    assert not receipt.holds
    caught = {check.name for check in receipt.checks if not check.holds}
    assert NO_SAY in caught


def _cutting(heads: int, cut: tuple[int, ...], inputs: tuple[int, ...] | None) -> Any:
    def hook(_module: Any, _args: Any, output: Any) -> Any:
        tensor: Tensor = output[0] if isinstance(output, tuple) else output
        parts = split(tensor, heads).clone()
        for row in range(len(parts)) if inputs is None else inputs:
            parts[row, :, list(cut)] = 0
        whole = parts.flatten(-2)
        return (whole, *output[1:]) if isinstance(output, tuple) else whole

    return hook


def test_no_other_thread_runs_the_model_while_a_hook_of_the_receipt_is_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another person's edit once ran with a layer zeroed."""
    model, items = loaded("GPT-2")
    seen: list[bool] = []
    real = Case.at

    def could_run() -> bool:
        free = EXCLUSIVE.acquire(blocking=False)
        if free:
            EXCLUSIVE.release()
        return free

    def at(case: Case, *args: Any) -> Any:
        if any(module._forward_pre_hooks for module in case.loaded.model.modules()):
            with ThreadPoolExecutor(1) as other:
                seen.append(other.submit(could_run).result())
        return real(case, *args)

    monkeypatch.setattr(Case, "at", at)
    assert edit_receipt(model, items).holds
    assert seen and not any(seen)


def test_the_command_prints_the_receipt() -> None:
    run = CliRunner().invoke(app, ["check", "builtin:gpt", "--edits"])
    assert run.exit_code == 0
    assert "edits are as asked for" in run.stdout and NO_SAY in run.stdout
    run = CliRunner().invoke(app, ["check", "builtin:gpt", "--edits", "--json"])
    raw = json.loads(run.stdout)
    assert raw["holds"] and all(check["holds"] for check in raw["checks"])
    assert {check["error"] for check in raw["checks"] if check["name"].startswith("no-op")} == {0.0}
