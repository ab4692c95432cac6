"""What do notebook calls say to arguments of a wrong type or value?

Every public function and every method of an atlas is called with one argument after the other
replaced by something odd. It may work, or end in an error of ours; nothing else.
"""

import inspect
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import attention_atlas as aa
from tests.fuzz.use import HUNG, OTHER, REFUSED, TooLong, time_limit

WORKED = "worked"
ODD: tuple[Any, ...] = (
    None, True, -1, 10**30, 1.5, float("nan"), "", "x", "L0H0", "L99H99", "\ud800", b"x", [],
    ["x"], [-1], [1.5], {}, {"x": 1}, object(), np.zeros((2, 2)), np.array(3.5), (1, 2, 3), max,
    Path("nope"), range(3), slice(2),
)  # fmt: skip
Targets = dict[str, tuple[Callable[..., Any], dict[str, Any]]]
_SKIPPED = {"progress", "html_action", "trust_remote_code", "keep"}


def targets(atlas: aa.Atlas, model: Any) -> Targets:
    """Name → function and arguments that work."""
    weights = atlas.layer_weights(0, 0)
    tokens = [str(text) for text in atlas.tokens(0)["text"]]
    views = {
        name: (getattr(aa, name), {"atlas": atlas})
        for name in ("neuron_view", "matrix_view", "map_view", "image_view", "heads_view")
    }
    plain = {"attention": [weights[None]], "tokens": tokens}
    edits: dict[str, dict[str, Any]] = {
        "ablate": {"heads": "L0H0"}, "mask": {"heads": "L0H0", "token": 0},
        "scale": {"heads": "L0H0", "by": 0.5}, "pattern": {"heads": "L0H0", "pattern": "uniform"},
        "neuron": {"heads": "L0H0", "side": "query", "index": 0, "value": 0.0},
        "patch": {"heads": "L0H0", "from_": "A dog ran."},
    }  # fmt: skip
    methods: dict[str, dict[str, Any]] = {
        "weights": {"input": 0, "head": "L0H0"}, "queries": {"head": "L0H0"},
        "keys": {"head": "L0H0"}, "values": {"head": "L0H0"}, "terms": {"head": "L0H0"},
        "tokens": {"input": 0}, "rows": {"input": 0, "layer": 0}, "layer_weights": {"input": 0},
        "shape": {"input": 0, "layer": 0}, "picture": {"input": 0}, "layer_of": {"head": "L0H0"},
        "tile": {"input": 0, "head": "L0H0", "level": 0, "row": 0, "column": 0},
        "overview": {"input": 0}, "pyramid": {"input": 0, "head": "L0H0"},
        "has": {"what": "query"}, "layout": {"method": "pca"}, "measure": {}, "scores": {},
        "place_all": {"method": "pca"}, "vector_tokens": {"stream": atlas.manifest.streams[0]},
    }  # fmt: skip
    return {
        "open": (aa.open, {"folder": atlas.path}), "compare": (aa.compare, {
            "first": atlas, "second": atlas}),
        "classify": (aa.classify, {"weights": weights}), "head_view": (aa.head_view, plain),
        "model_view": (aa.model_view, plain), **views,
        **{name: (_applied(getattr(aa, name), model), given) for name, given in edits.items()},
        **{f"atlas.{name}": (getattr(atlas, name), given) for name, given in methods.items()},
    }  # fmt: skip


def _applied(make: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """An edit made and then put into a model: some arguments are only judged there."""

    def apply(**given: Any) -> None:
        with aa.edit(model, [make(**given)]):
            pass

    apply.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    return apply


def run_calls(
    atlas: aa.Atlas, model: Any, odd: tuple[Any, ...] = ODD
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Call everything that reads an atlas; return the outcomes by function, and the defects."""
    return run_targets(targets(atlas, model), odd)


def run_targets(
    functions: Targets, odd: tuple[Any, ...] = ODD
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Call functions with one odd argument after the other; outcomes by function, and defects."""
    counts: dict[str, Counter[str]] = {}
    defects: list[str] = []
    for name, (function, given) in functions.items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in _SKIPPED or parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                continue
            for value in odd:
                result, what = _call(function, {**given, parameter.name: value})
                counts.setdefault(name, Counter())[result] += 1
                if result in (OTHER, HUNG):
                    defects.append(f"{name}({parameter.name}={_short(value)}): {what}")
    return counts, defects


def _call(function: Callable[..., Any], given: dict[str, Any]) -> tuple[str, str]:
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**given)
    except aa.AtlasError:
        return REFUSED, ""
    except TooLong:
        return HUNG, ""
    except Exception as problem:
        return OTHER, repr(problem)[:200]
    return WORKED, ""


def _short(value: Any) -> str:
    return ascii(value)[:40]
