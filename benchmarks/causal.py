"""What does the causal importance of every head cost, and does an estimate's interval hold?

    python -m benchmarks.causal --smollm2 FILE      speed on a BERT-base and a GPT-2 shape; coverage

Speed: untrained models of 12 × 12 heads of width 64, 200 sentences. In one run: a plain pass over
the corpus one sentence at a time, as the naive loop runs it, and in batches, as we run it; the
sweep; the estimate; and the naive loop (`with aa.edit`, one head of one sentence at a time) on some
of the sentences, whose effects must be ours. Times are in plain passes, both ways.

Coverage: exact effects of every head over 200 sentences, then 200 estimates from random parts of
the sentences; how often the interval holds the exact value, over heads and estimates.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf
from torch.nn import functional as F

import attention_atlas as aa
from attention_atlas.edits.anatomy import anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.bind import MOST
from attention_atlas.lab.causal.exchange import Pool
from attention_atlas.lab.causal.plan import grouped, tokens_of
from attention_atlas.lab.causal.slopes import slopes
from attention_atlas.lab.causal.statistics import estimated
from attention_atlas.lab.causal.sweep import Sweep
from attention_atlas.lab.causal.task import Group, prepare, task_of
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.studies.demo import sentences
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "causal.md"
COUNT, BUDGET, ESTIMATES = 200, 18, 200


def shapes() -> dict[str, Loaded]:
    """Untrained models of 12 × 12 heads, with the tokenizers of the built-in models."""
    torch.manual_seed(0)
    bert, gpt = load("builtin:bert").tokenizer, load("builtin:gpt").tokenizer
    return {
        "BERT-base shape (30,522 words)": Loaded(
            hf.BertForMaskedLM(hf.BertConfig()).eval(), bert, "bert-base", None
        ),
        "GPT-2 small shape (50,257 words)": Loaded(
            hf.GPT2LMHeadModel(hf.GPT2Config()).eval(), gpt, "gpt2-small", None
        ),
    }


def texts() -> list[str]:
    return [line["text"] for line in sentences()][:COUNT]


def prepared(loaded: Loaded, by: str) -> tuple[Sweep, list[Group]]:
    """What `aa.causal` makes ready before it sweeps."""
    items = [encode(loaded, given) for given in read_inputs(texts())]
    task = task_of(loaded, items[0], 0)
    ready = [prepare(loaded, task, item, number) for number, item in enumerate(items)]
    groups = [group for group in ready if group is not None]
    known = anatomy(loaded, items[:2])
    sweep = Sweep(loaded, task, known, Pool(by, 0), tokens_of(loaded.model))
    sweep.look(groups[0])
    if by != "zero":
        for group in grouped(groups[:MOST], 1, sweep):
            sweep.add_reference(group)
    return sweep, groups


def swept(sweep: Sweep, groups: list[Group], direct: bool) -> tuple[Any, float]:
    """Effects (inputs, heads) and seconds."""
    rows: dict[int, Any] = {}
    began = time.perf_counter()
    for group in grouped(groups, max(layer.heads for layer in sweep.known.layers), sweep):
        total, _ = sweep.run(group, direct)
        rows |= dict(zip(group.numbers, total, strict=True))
    return np.stack([rows[n] for n in sorted(rows)]), time.perf_counter() - began


def plain_seconds(loaded: Loaded, groups: list[Group], times: int = 2) -> float:
    """Seconds of one pass over the corpus, the best of some."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        with torch.no_grad():
            for group in groups:
                loaded.model(**group.tensors)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def naive(sweep: Sweep, groups: list[Group]) -> tuple[Any, float]:
    """Effects by zero (inputs, heads) and seconds: one head of one sentence at a time."""
    loaded, known = sweep.loaded, sweep.known
    names = [layer.name(head) for layer in known.layers for head in range(layer.heads)]
    effects, began = np.zeros((len(groups), len(names))), time.perf_counter()
    for place, group in enumerate(groups):
        counted, right = group.counted, group.targets[group.counted]
        with torch.no_grad():
            plain = F.cross_entropy(loaded.model(**group.tensors).logits[counted], right)
            for number, name in enumerate(names):
                with editing(loaded, [aa.ablate(name)], known):
                    logits = loaded.model(**group.tensors).logits
                effects[place, number] = F.cross_entropy(logits[counted], right) - plain
    return effects, time.perf_counter() - began


def speed(name: str, loaded: Loaded, every: int) -> list[str]:
    """One row of the table of speed, and what it was compared with."""
    sweep, groups = prepared(loaded, "zero")
    alone = plain_seconds(loaded, groups)
    batched = plain_seconds(loaded, grouped(groups, 1, sweep))
    exact, seconds = swept(sweep, groups, direct=False)
    _, with_direct = swept(sweep, groups, direct=True)
    began = time.perf_counter()
    some = aa.causal(loaded, texts(), by="zero", budget=BUDGET, progress=False)
    estimate = time.perf_counter() - began
    picked = range(0, len(groups), every)
    loop, loop_seconds = naive(sweep, [groups[place] for place in picked])
    loop_seconds *= len(groups) / len(picked)
    apart = np.abs(exact[list(picked)] - loop).max()

    def passes(took: float) -> str:
        return f"{took:.0f} s = {took / alone:.1f} ({took / batched:.1f})"

    tokens = sum(group.long for group in groups)
    return [
        f"**{name}**, {len(groups)} sentences, {tokens} tokens; a plain pass takes {alone:.2f} s "
        f"one sentence at a time, {batched:.2f} s in batches.",
        "",
        "| what | seconds = plain passes (passes in batches) |",
        "|---|---|",
        f"| exact effects of 144 heads | {passes(seconds)} |",
        f"| exact effects and direct effects | {passes(with_direct)} |",
        f"| estimate, `budget={BUDGET}` ({some.attrs['exact_inputs']} sentences exact), all of "
        f"`aa.causal` | {passes(estimate)} |",
        f"| naive loop, from {len(picked)} sentences | {passes(loop_seconds)} |",
        "",
        f"Largest difference from the naive loop, over {len(picked)} × 144 effects: {apart:.1e} "
        f"nats; the largest effect is {np.abs(loop).max():.1e}.",
        "",
    ]  # fmt: skip


def coverage(model: str, by: str) -> str:
    """One row of the table of coverage."""
    loaded = load(model)
    sweep, groups = prepared(loaded, by)
    exact, _ = swept(sweep, groups, direct=False)
    followed = np.zeros_like(exact)
    places = {group.numbers[0]: place for place, group in enumerate(groups)}
    for group in grouped(groups, 1, sweep):
        followed[[places[number] for number in group.numbers]] = slopes(sweep, group)
    budgeted = aa.causal(loaded, texts(), by=by, budget=BUDGET, progress=False)
    several, truth = budgeted.attrs["exact_inputs"], exact.mean(0)
    inside, bias, dice = [], [], np.random.default_rng(0)
    for _ in range(ESTIMATES):
        chosen = np.sort(dice.choice(len(exact), several, replace=False))
        found = estimated(followed, exact[chosen], chosen)
        inside.append((found.corpus_low <= truth) & (truth <= found.corpus_high))
        bias.append(found.effect - truth)
    gain = np.median(exact.var(0, ddof=1) / (exact - followed).var(0, ddof=1))
    off = np.abs(np.mean(bias, 0)) / (np.std(bias, 0) / np.sqrt(ESTIMATES))
    heads = np.mean(inside, 0)
    name = Path(model).name
    return (
        f"| {name} | {by} | {exact.shape[1]} | {several} | {100 * np.mean(inside):.1f} % | "
        f"{100 * np.quantile(heads, 0.1):.0f} % | {gain:.1f} | {np.mean(off < 2):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smollm2", required=True)
    parser.add_argument("--every", type=int, default=4, help="naive on every so many sentences")
    asked = parser.parse_args()
    lines = ["# Causal importance of every head", "", about(), ""]
    for name, loaded in shapes().items():
        lines += speed(name, loaded, asked.every)
    lines += [
        f"**Coverage** of `corpus_low` to `corpus_high` of the estimate (`budget={BUDGET}`), "
        f"{ESTIMATES} estimates each; 95 % is promised.",
        "",
        "| model | by | heads | sentences exact | holds the exact effect | worst tenth of heads | "
        "variance saved by gradients, median | heads with no bias seen |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in ("builtin:gpt", "builtin:bert", asked.smollm2):
        for by in ("zero", "resample"):
            lines.append(coverage(model, by))
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
