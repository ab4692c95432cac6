"""What does the causal importance of every head cost, and does an estimate's interval hold?

    python -m benchmarks.causal speed exact --shape bert --threads 6      also: --shape gpt2, large
    python -m benchmarks.causal speed naive --shape bert --save naive.npy --seconds 150
    python -m benchmarks.causal speed estimate --shape bert
    python -m benchmarks.causal coverage builtin:gpt --by zero

Speed: untrained models (BERT-base and GPT-2 small, 12 × 12 heads of width 64; GPT-2 large) over 200
texts of random words, as long as the demo's sentences. Each run first measures plain passes over
the corpus: one text at a time, as the naive loop runs, and in batches, as we run. The naive loop is
`with aa.edit`, one head of one text at a time; its effects are compared with those of the sweep.

Coverage: exact effects of every head over the demo's sentences, then 200 estimates from random
parts of them; how often the interval holds the exact value, over heads and estimates.

Each prints lines of JSON; causal.md is written from them.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
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
from attention_atlas.lab.causal.plan import GRADIENTS, exact_cost, grouped, tokens_of
from attention_atlas.lab.causal.slopes import slopes
from attention_atlas.lab.causal.statistics import estimated
from attention_atlas.lab.causal.sweep import Sweep
from attention_atlas.lab.causal.task import Group, PredictionTask, prepare, task_of
from attention_atlas.lab.replay import Replay
from attention_atlas.models.encode import Encoded, encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.studies.demo import sentences
from benchmarks.machine import about

COUNT, BUDGET, ESTIMATES = 200, 18, 200
LARGE = {"n_embd": 1280, "n_layer": 36, "n_head": 20}
MASK = 103


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


def shape(name: str, device: str) -> tuple[Sweep, list[Group]]:
    """An untrained model, and 200 texts of random words."""
    torch.manual_seed(0)
    network: Any = hf.BertForMaskedLM(hf.BertConfig()) if name == "bert" else hf.GPT2LMHeadModel(
        hf.GPT2Config(**(LARGE if name == "large" else {}))
    )  # fmt: skip
    loaded = Loaded(network.to(device).eval(), None, name, None)
    kind = "masked" if name == "bert" else "next"
    dice = np.random.default_rng(0)
    tokenizer = load("builtin:bert").tokenizer
    lengths = [len(tokenizer(text)["input_ids"]) for text in texts(COUNT)]
    rows = [dice.integers(1000, 30000, length).tolist() for length in lengths]
    items = [encode(loaded, each) for each in read_inputs([{"input_ids": [row]} for row in rows])]
    return prepared(loaded, PredictionTask(kind, "input_ids", MASK, 0), items, "zero")


def texts(count: int) -> list[str]:
    return [line["text"] for line in sentences()][:count]


def prepared(
    loaded: Loaded, task: PredictionTask, items: Sequence[Encoded], by: str
) -> tuple[Sweep, list[Group]]:
    """What `aa.causal` makes ready before it sweeps."""
    ready = [prepare(loaded, task, item, number) for number, item in enumerate(items)]
    groups = [group for group in ready if group is not None]
    known = anatomy(loaded, items[:2])
    sweep = Sweep(loaded, task, known, Pool(by, 0), tokens_of(loaded.model))
    sweep.look(groups[0])
    if by != "zero":
        for group in grouped(groups[:MOST], 1, sweep):
            sweep.add_reference(group)
    return sweep, groups


def now(sweep: Sweep) -> float:
    """Seconds: of the processor on a CPU with one thread, so that others do not count."""
    if sweep.loaded.model.device.type == "cuda":
        torch.cuda.synchronize()
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def plain_seconds(sweep: Sweep, groups: Sequence[Group]) -> float:
    """Seconds of one pass over the corpus, the better of two."""
    seconds = []
    for _ in range(2):
        began = now(sweep)
        with torch.no_grad():
            for group in groups:
                sweep.loaded.model(**group.tensors)
        seconds.append(now(sweep) - began)
    return min(seconds)


def swept(sweep: Sweep, groups: Sequence[Group], direct: bool) -> tuple[Any, float]:
    """Effects (inputs, heads) and seconds."""
    rows: dict[int, Any] = {}
    began = now(sweep)
    for group in grouped(groups, max(layer.heads for layer in sweep.known.layers), sweep):
        total, _ = sweep.run(group, direct)
        rows |= dict(zip(group.numbers, total, strict=True))
    return np.stack([rows[number] for number in sorted(rows)]), now(sweep) - began


def followed(sweep: Sweep, groups: Sequence[Group]) -> Any:
    """What gradients foretell, (inputs, heads)."""
    rows: dict[int, Any] = {}
    for group in grouped(groups, 1, sweep):
        rows |= dict(zip(group.numbers, slopes(sweep, group), strict=True))
    return np.stack([rows[number] for number in sorted(rows)])


def naive(sweep: Sweep, groups: Sequence[Group], seconds: float) -> Any:
    """Effects by zero (inputs, heads), of as many inputs as fit into so many seconds."""
    loaded, known = sweep.loaded, sweep.known
    names = [layer.name(head) for layer in known.layers for head in range(layer.heads)]
    rows: list[list[float]] = []
    began = time.perf_counter()
    for group in groups:
        if time.perf_counter() - began > seconds:
            break
        counted, right = group.counted, group.targets[group.counted]
        with torch.no_grad():
            plain = F.cross_entropy(loaded.model(**group.tensors).logits[counted], right)
            rows.append([])
            for name in names:
                with editing(loaded, [aa.ablate(name)], known):
                    logits = loaded.model(**group.tensors).logits
                rows[-1].append(float(F.cross_entropy(logits[counted], right) - plain))
    return np.array(rows)


def exact_part(sweep: Sweep, groups: Sequence[Group], by: str) -> int:
    """How many inputs a budget makes exact, as in `aa.causal`."""
    replay = Replay(sweep.loaded, groups[0].tensors, known=sweep.known)
    before = GRADIENTS + (0.0 if by == "zero" else min(MOST, len(groups)) / len(groups))
    cost = exact_cost(sweep, replay, groups[0])
    return int((BUDGET - before) / cost * len(groups))


def speed(asked: argparse.Namespace) -> None:
    sweep, groups = shape(asked.shape, asked.device)
    alone = plain_seconds(sweep, groups)
    batched = plain_seconds(sweep, grouped(groups, 1, sweep))
    say(machine=about(), threads=torch.get_num_threads(), tokens=sum(x.long for x in groups),
        alone=alone, batched=batched)  # fmt: skip
    began = now(sweep)
    if asked.what == "naive":
        effects = naive(sweep, groups[::4], asked.seconds)
        took = (now(sweep) - began) * len(groups) / len(effects)
        say(naive_inputs=len(effects))
    elif asked.what == "estimate":
        several = exact_part(sweep, groups, "zero")
        followed(sweep, groups)
        say(gradients=now(sweep) - began)
        effects, _ = swept(sweep, groups[:several], direct=False)
        took = now(sweep) - began
        say(exact_inputs=several)
    else:
        effects, took = swept(sweep, groups, direct=asked.what == "direct")
    say(what=asked.what, seconds=took, passes=took / alone, batched_passes=took / batched)
    if asked.save:
        np.save(asked.save, effects)


def coverage(asked: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    loaded = load(asked.model)
    items = [encode(loaded, given) for given in read_inputs(texts(asked.count))]
    sweep, groups = prepared(loaded, task_of(loaded, items[0], 0), items, asked.by)
    sweep.known = replace(sweep.known, layers=sweep.known.layers[:: asked.every])
    exact, _ = swept(sweep, groups, direct=False)
    slope = followed(sweep, groups)
    several = asked.part or exact_part(sweep, groups, asked.by)
    inside, errors, dice = [], [], np.random.default_rng(0)
    truth = exact.mean(0)
    for _ in range(ESTIMATES):
        chosen = np.sort(dice.choice(len(exact), several, replace=False))
        found = estimated(slope, exact[chosen], chosen)
        inside.append((found.corpus_low <= truth) & (truth <= found.corpus_high))
        errors.append(found.effect - truth)
    saved = exact.var(0, ddof=1) / (exact - slope).var(0, ddof=1)
    off = np.abs(np.mean(errors, 0)) / (np.std(errors, 0) / np.sqrt(ESTIMATES))
    say(model=asked.model, by=asked.by, inputs=len(exact), heads=exact.shape[1], exact=several,
        holds=float(np.mean(inside)), worst_tenth=float(np.quantile(np.mean(inside, 0), 0.1)),
        variance_saved=float(np.median(saved)), bias_in_errors=float(np.median(off)),
        gradient_alone=float(np.corrcoef(truth, slope.mean(0))[0, 1]))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(required=True)
    fast = kinds.add_parser("speed")
    fast.add_argument("what", choices=("exact", "direct", "estimate", "naive"))
    fast.add_argument("--shape", choices=("bert", "gpt2", "large"), default="bert")
    fast.add_argument("--device", default="cpu")
    fast.add_argument("--threads", type=int, default=1)
    fast.add_argument("--seconds", type=float, default=1e9, help="of the naive loop, at most")
    fast.add_argument("--save", help="a .npy file for the effects")
    fast.set_defaults(run=speed)
    cover = kinds.add_parser("coverage")
    cover.add_argument("model")
    cover.add_argument("--by", default="zero")
    cover.add_argument("--count", type=int, default=COUNT)
    cover.add_argument("--part", type=int, help="inputs that are exact; unset: as the budget says")
    cover.add_argument("--every", type=int, default=1, help="only every so many layers")
    cover.set_defaults(run=coverage)
    asked = parser.parse_args()
    torch.set_num_threads(getattr(asked, "threads", 1))
    asked.run(asked)


if __name__ == "__main__":
    main()
