"""What do the calls that run a model say to odd arguments? `capture`, `check`, `causal` and so on.

The model is a small one with its head, so that hundreds of calls that do work take a minute.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attention_atlas as aa
from attention_atlas.models.loading import Loading
from attention_atlas.record.write.capture import capture as store_capture
from tests.fuzz.calls import Targets

TEXT, OTHER = "she sees the small elephant", "she sees the kleinen elephant"


def studies(model: Any, tokenizer: Any, work: Path) -> Targets:
    """Name → function and arguments that work."""
    given = {"model": model, "tokenizer": tokenizer}
    quiet = {**given, "progress": False}
    pair = {"clean": TEXT, "corrupt": OTHER, "answer": "den", "wrong": "sie"}
    atlas = aa.capture(**quiet, inputs=[TEXT], path=work / "whole.atlas")
    study = aa.patching(**given, pairs=pair)
    view = aa.head_view(atlas)
    return {
        "capture": (_options(aa.capture, store_capture), {**quiet, "inputs": TEXT}),
        "check": (_options(aa.check, aa.check, Loading), {**given, "inputs": TEXT}),
        "causal": (_options(aa.causal, aa.causal, Loading), {**quiet, "inputs": [TEXT, OTHER]}),
        "patching": (aa.patching, {**given, "pairs": pair}),
        "patching, one part of a pair": (
            _pair(given), {"clean": TEXT, "corrupt": OTHER, "answer": "den", "wrong": "sie"}
        ),
        "only_heads": (_only_heads, {**given, "heads": "L0H0", "inputs": TEXT}),
        "view.save": (view.save, {"path": work / "page.html"}),
        "view.save a figure": (aa.matrix_view(atlas).save, {"path": work / "figure.svg"}),
        "view.html": (view.html, {}),
        "view.picks": (_picks(view), {"picks": {"layer": 0}}),
        "patching.save": (study.save, {"path": work / "study.svg"}),
        "patching.picture": (study.picture, {}),
        "text_view": (aa.text_view, {"atlas": atlas}),
    }  # fmt: skip


def _options(function: Callable[..., Any], *takers: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the keywords that it passes on as parameters of its own."""

    def call(**given: Any) -> Any:
        return function(**given)

    parameters = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        for taker in takers
        for name, about in inspect.signature(taker).parameters.items()
        if about.kind is not about.VAR_KEYWORD
    }
    call.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return call


def _pair(given: dict[str, Any]) -> Callable[..., Any]:
    """Patching of one pair, whose parts are the arguments."""

    def patch(clean: Any, corrupt: Any, answer: Any, wrong: Any = None, align: Any = None) -> None:
        pair = {"clean": clean, "corrupt": corrupt, "answer": answer, "wrong": wrong}
        aa.patching(**given, pairs=pair | ({} if align is None else {"align": align}))

    return patch


def _only_heads(
    model: Any, heads: Any, tokenizer: Any = None, *, shared: Any = False, inputs: Any = None
) -> None:
    """Training of heads that ends at once, so that the next call finds the model as it was."""
    aa.only_heads(model, heads, tokenizer, shared=shared, inputs=inputs).restore()


def _picks(view: aa.View) -> Callable[..., Any]:
    def pick(picks: Any) -> None:
        view.picks = picks

    return pick
