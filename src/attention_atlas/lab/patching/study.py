"""Which heads make the difference between a clean and a corrupt input?

denoise  the corrupt input runs, and one head does what it did on the clean input: what is brought
         back?
noise    the clean input runs, and one head does what it did on the corrupt input: what is lost?

The recovered share is (patched − corrupt) / (clean − corrupt) in both directions: 0 is the corrupt
input's metric and 1 the clean one's.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch

from attention_atlas.edits.anatomy import Anatomy
from attention_atlas.lab.answers import Question, question
from attention_atlas.lab.patching.align import align
from attention_atlas.lab.patching.heads import Effect, Transplant, head_effects
from attention_atlas.lab.patching.pairs import Pair, read_pairs
from attention_atlas.lab.patching.paths import path_effects
from attention_atlas.lab.patching.plan import Plan, make_plan, short_name
from attention_atlas.lab.patching.result import Patching
from attention_atlas.lab.worlds import scene
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError


def patching(
    model: Any,
    pairs: Any,
    tokenizer: Any = None,
    *,
    metric: str = "difference",
    what: str = "output",
    heads: Any = "all",
    positions: Any = None,
    direction: str = "both",
    through: Any = None,
) -> Patching:
    """Patch heads between clean and corrupt inputs; return the recovered shares.

    model      a model's name, a transformers model, (model, tokenizer), or what `load` returns
    pairs      one or several dicts with clean, corrupt, answer and, if needed, wrong and align
    metric     "difference" (of the logits of answer and wrong), "probability" or "loss"
    what       "output", "pattern", "query", "key" or "value" of each head
    positions  numbers of tokens, each alone, or "each"; unset: all tokens together
    direction  "denoise", "noise" or "both"
    through    receiving heads: what each head brings by way of their query, key or value (`what`;
               "output" means all three) and no other head
    """
    loaded = model if isinstance(model, Loaded) else load(model, tokenizer)
    plan = make_plan(metric, what, heads, positions, direction, through)
    several = read_pairs(pairs)
    rows: list[dict[str, Any]] = []
    layers: tuple[tuple[str, ...], ...] = ()
    with EXCLUSIVE:
        for number, pair in enumerate(several):
            study = _PairStudy(loaded, pair, plan)
            layers = layer_names(study.clean.known)
            rows += [{"pair": number, **row} for row in study.rows()]
    if not rows:
        raise InputError(
            f"no head comes before {', '.join(plan.through)}, so no path leads into it; give heads "
            "of later layers"
        )
    table = pd.DataFrame(rows)
    table["position"] = table["position"].astype("Int64")
    return Patching(table, layers)


class _PairStudy:
    """One pair of inputs, with what is asked of both."""

    def __init__(self, loaded: Loaded, pair: Pair, plan: Plan):
        self.plan = plan
        self.clean, self.corrupt = scene(loaded, pair.clean), scene(loaded, pair.corrupt)
        self.align = align(self.clean.item, self.corrupt.item, pair.align)
        answers = pair.answer, pair.wrong
        self.asked: dict[str, Question] = {}
        self.plain: dict[str, float] = {}
        rounding = 0.0
        for name, each in (("clean", self.clean), ("corrupt", self.corrupt)):
            logits = each.plain
            self.asked[name] = question(loaded, each.item, answers, plan.metric, logits)
            (self.plain[name],) = self.asked[name].read(logits)
            unit = torch.finfo(logits.dtype).eps
            rounding = max(rounding, unit * float(logits.abs().max()))
        if abs(self.plain["clean"] - self.plain["corrupt"]) <= rounding:
            raise InputError(
                f"the clean and the corrupt input give the same {plan.metric} "
                f"({self.plain['clean']:.4g}), so nothing can be recovered; give inputs whose "
                "answers differ"
            )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row of the table for each world."""
        effects = path_effects if self.plan.through else head_effects
        gap = self.plain["clean"] - self.plain["corrupt"]
        for direction in self.plan.directions:
            for effect in effects(self._transplant(direction), self.plan):
                yield {
                    "direction": direction, "what": self.plan.what, **_where(effect),
                    "metric": self.plan.metric, **self.plain, "patched": effect.value,
                    "recovered": (effect.value - self.plain["corrupt"]) / gap,
                }  # fmt: skip

    def _transplant(self, direction: str) -> Transplant:
        if direction == "noise":
            return Transplant(self.clean, self.corrupt.given, self.align, self.asked["clean"])
        swapped = None if self.align is None else tuple((b, a) for a, b in self.align)
        return Transplant(self.corrupt, self.clean.given, swapped, self.asked["corrupt"])


def _where(effect: Effect) -> dict[str, Any]:
    return {
        "head": effect.head, "through": effect.through, "position": effect.position,
        "token": effect.token,
    }  # fmt: skip


def layer_names(known: Anatomy) -> tuple[tuple[str, ...], ...]:
    """Return the names of the heads of each layer."""
    return tuple(
        tuple(short_name(known, layer, head) for head in range(layer.heads))
        for layer in known.layers
    )
