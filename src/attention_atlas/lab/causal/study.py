"""How much does each head matter to what a model predicts, over a corpus?

effect   mean over inputs of the loss with the head exchanged, less the plain loss, in nats
direct   the same with all that comes after the head frozen
gap      direct − effect: what later layers make up for (self-repair), if it is positive
control  the mean effect of a random other head of the same layer
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.edits.anatomy import anatomy
from attention_atlas.edits.bind import MOST
from attention_atlas.lab.causal.exchange import Pool, refuse_by
from attention_atlas.lab.causal.plan import GRADIENTS, exact_cost, grouped, tokens_of
from attention_atlas.lab.causal.slopes import slopes
from attention_atlas.lab.causal.statistics import (
    Effects,
    discoveries,
    estimated,
    exact,
    of_others,
)
from attention_atlas.lab.causal.sweep import Sweep
from attention_atlas.lab.causal.task import Group, prepare, task_of
from attention_atlas.lab.replay import Replay
from attention_atlas.measure.arrays import Floats
from attention_atlas.models.encode import Encoded, encode
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError
from attention_atlas.names.head import Head
from attention_atlas.names.progress import bar

METRICS = ("loss",)
FEWEST = 20  # inputs that an estimate is made from: fewer hold too little of a skewed effect


@dataclass(frozen=True)
class Asked:
    """What is asked of a study of causal importance."""

    by: str = "resample"
    metric: str = "loss"
    budget: float | None = None
    seed: int = 0
    progress: bool = True


def causal(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    by: str = "resample",
    metric: str = "loss",
    budget: float | None = None,
    *,
    seed: int = 0,
    progress: bool = True,
    **loading: Any,
) -> pd.DataFrame:
    """Measure how much each head matters to what a model predicts; return a row for each head.

    by       what a head moves instead: "zero", "mean" or "resample"
    metric   "loss": of the next token, of masked tokens, or of the model's own label
    budget   about how many plain passes it may cost; unset: exact

    `loading` are the fields of `Loading`. What was done is in `.attrs` of the table.
    """
    loaded = model if isinstance(model, Loaded) else load(model, tokenizer, **loading)
    items = [encode(loaded, given) for given in read_inputs(inputs)]
    return causal_table(loaded, items, Asked(by, metric, budget, seed, progress))


def causal_table(loaded: Loaded, items: Sequence[Encoded], asked: Asked) -> pd.DataFrame:
    """Return the table of causal importance of a model over encoded inputs."""
    _refuse(asked, len(items))
    with EXCLUSIVE:
        known = anatomy(loaded, items[:2])
        task = task_of(loaded, items[0], asked.seed)
        ready = [prepare(loaded, task, item, number) for number, item in enumerate(items)]
        groups = [group for group in ready if group is not None]
        if not groups:
            raise InputError("no input has a token to predict; give texts of two tokens or more")
        refuse_by(asked.by, len(groups))
        pool = Pool(asked.by, asked.seed)
        sweep = Sweep(loaded, task, known, pool, tokens_of(loaded.model))
        sweep.look(groups[0])
        if asked.by != "zero":
            for group in grouped(groups[:MOST], 1, sweep):
                sweep.add_reference(group)
        study = _budgeted(sweep, groups, asked) if asked.budget else _whole(sweep, groups, asked)
    table = _table(sweep, study, asked)
    left_out = len(items) - len(groups)
    notes = [f"{left_out} inputs have nothing to predict and are left out"] if left_out else []
    table.attrs |= {"by": asked.by, "predicts": task.kind, "notes": notes + study.notes}
    return table


@dataclass(frozen=True)
class Study:
    """What a study found: effects, direct effects (heads,), and from how many inputs."""

    effects: Effects
    direct: Floats
    inputs: int
    exact: int  # of these inputs, how many had every head exchanged
    notes: list[str]


def _whole(sweep: Sweep, groups: Sequence[Group], asked: Asked) -> Study:
    """Exchange every head on every input."""
    totals, directs = _swept(sweep, groups, asked, direct=True)
    notes = [sweep.no_direct] if sweep.no_direct else []
    several = len(groups)
    return Study(exact(totals, asked.seed), directs.mean(0), several, several, notes)


def _budgeted(sweep: Sweep, groups: Sequence[Group], asked: Asked) -> Study:
    """Exchange every head on as many inputs as a budget allows, and follow gradients on all."""
    count, budget = len(groups), asked.budget or 0.0
    replay = Replay(sweep.loaded, groups[0].tensors, known=sweep.known)
    cost = exact_cost(sweep, replay, groups[0])
    before = GRADIENTS + (0.0 if asked.by == "zero" else min(MOST, count) / count)
    several = int((budget - before) / cost * count)
    if several >= count:
        return _whole(sweep, groups, asked)
    if several < FEWEST:
        least = before + cost * min(FEWEST, count) / count
        raise InputError(
            f"a budget of {budget:g} plain passes is enough for {max(several, 0)} of {count} "
            f"inputs; give {np.ceil(least):.0f} or more, or leave it out for the exact effects"
        )
    followed = np.zeros((count, sum(layer.heads for layer in sweep.known.layers)))
    places = {group.numbers[0]: place for place, group in enumerate(groups)}
    for group in grouped(groups, 1, sweep):
        followed[[places[number] for number in group.numbers]] = slopes(sweep, group)
    dice = np.random.default_rng([asked.seed, count])
    chosen = np.sort(dice.choice(count, several, replace=False))
    part, _ = _swept(sweep, [groups[place] for place in chosen], asked, direct=False)
    nothing = np.full(part.shape[1], np.nan)
    note = (
        f"estimated: {several} of {count} inputs exact, gradients on all; no direct effects within "
        "a budget"
    )
    return Study(estimated(followed, part, chosen), nothing, count, several, [note])


def _swept(
    sweep: Sweep, groups: Sequence[Group], asked: Asked, direct: bool
) -> tuple[Floats, Floats]:
    """Return total and direct effects (inputs, heads), inputs in the order that is given."""
    places = {group.numbers[0]: place for place, group in enumerate(groups)}
    most = max(layer.heads for layer in sweep.known.layers)
    shape = len(groups), sum(layer.heads for layer in sweep.known.layers)
    totals, directs = np.zeros(shape), np.zeros(shape)
    done = 0
    with bar("exchanging heads", len(groups), asked.progress) as draw:
        for group in grouped(groups, most, sweep):
            rows = [places[number] for number in group.numbers]
            totals[rows], directs[rows] = sweep.run(group, direct)
            done += len(group)
            draw(done)
    return totals, directs


def _table(sweep: Sweep, study: Study, asked: Asked) -> pd.DataFrame:
    """Return a study as a table with a row for each head."""
    layers, found = sweep.known.layers, study.effects
    several = len(sweep.known.towers) > 1
    names = [
        str(Head(layer.tower if several else "", layer.number, head))
        for layer in layers
        for head in range(layer.heads)
    ]
    numbers = np.repeat(np.arange(len(layers)), [layer.heads for layer in layers])
    columns = {
        "head": names, "effect": found.effect, "low": found.low, "high": found.high,
        "q": discoveries(found.p), "direct": study.direct, "gap": study.direct - found.effect,
        "control": of_others(found.effect, numbers), "n": study.inputs,
        "corpus_low": found.corpus_low, "corpus_high": found.corpus_high,
    }  # fmt: skip
    table = pd.DataFrame(columns)
    table.attrs = {"metric": asked.metric, "seed": asked.seed, "exact_inputs": study.exact}
    return table


def _refuse(asked: Asked, inputs: int) -> None:
    if asked.metric not in METRICS:
        raise InputError(f"no metric is called {asked.metric!r}; there is {', '.join(METRICS)}")
    if asked.budget is not None and not asked.budget > 0:
        raise InputError(
            f"a budget of {asked.budget:g} plain passes was asked for; give a number above zero"
        )
    refuse_by(asked.by, inputs)
