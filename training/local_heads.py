"""Can one head learn what it has forgotten, while everything else stays as it is?

    python -m training.local_heads

The copying head of builtin:gpt forgets: its weights are drawn at random. Then one head learns, the
same head or another one in its place: on random sequences that repeat with periods of 16 to 47
tokens, or on these and sentences. Nothing else of the model changes by one bit. Prints a table of
losses, of how much the head looks at the token after the earlier copy, and of the kinds of all
heads, before and after.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from attention_atlas.studies.demo import sentences
from training import gpt, heads
from training.prepare import VOCABULARY

PERIOD = 32
COPYING = "L4H5"
LEARNERS = ((COPYING, False), (COPYING, True), ("L4H0", True), ("L1H0", True))
SENTENCES = 60  # that are measured; the others are learnt from
LENGTH = 97
SPREAD = 0.02  # of the random weights, as a new GPT-2 has them


@dataclass(frozen=True)
class State:
    """What the model and one head do at one moment."""

    repeat_loss: float  # of the second copy
    constant_loss: float  # the same with what the head moves replaced by its mean
    prose_loss: float
    induction: float  # of the head
    copying: str  # the head that looks most at the token after the earlier copy, and how much
    kinds: dict[str, str]  # of every head


def state_of(loaded: Loaded, head: str, prose: list[str]) -> State:
    """Measure the model on repeated sequences and on prose."""
    model = loaded.model.eval()
    repeated = gpt.repeated_rows(32, PERIOD, seed=7)
    labels = repeated.clone()
    labels[:, : PERIOD + 2] = gpt.IGNORED
    layer, number = (int(part) for part in head[1:].split("H"))
    looks = [heads.induction(w, PERIOD) for w in heads.attentions(model, input_ids=repeated)]
    most, weight = heads.best(heads.table(looks))
    with torch.no_grad():
        repeat_loss = gpt.loss_of(model(repeated).logits, labels).item()
        others = [{"input_ids": other[None]} for other in gpt.repeated_rows(8, PERIOD, seed=8)]
        with aa.edit(loaded, aa.ablate(head, by="mean", from_=others)):
            constant_loss = gpt.loss_of(model(repeated).logits, labels).item()
        loss = prose_loss(loaded, prose).item()
    return State(
        repeat_loss,
        constant_loss,
        loss,
        float(looks[layer][number]),
        f"{most} {weight:.2f}",
        kinds_of(loaded, prose),
    )


def kinds_of(loaded: Loaded, prose: list[str]) -> dict[str, str]:
    """Name the kind of every head on prose."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "now.atlas"
        atlas = aa.capture(
            loaded.model, prose, loaded.tokenizer, path=path, device="cpu", progress=False
        )
        atlas.measure()
        table = atlas.heads()
        return dict(zip(table["head"], table["kind"], strict=True))


def forget(model: nn.Module, head: str, seed: int) -> None:
    """Draw the weights of one head at random."""
    dice = torch.Generator().manual_seed(seed)
    with aa.only_heads(model, head) as only, torch.no_grad():
        for name, weight in model.named_parameters():
            if name in only.slices:
                mask = only.slices[name]
                weight[mask] = torch.randn(int(mask.sum()), generator=dice) * SPREAD


@contextmanager
def one_thread() -> Iterator[None]:
    """Repeat to the bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def repeating_rows(count: int, seed: int) -> Tensor:
    """Random sequences that repeat, each with a period of its own: (count, LENGTH)."""
    dice = torch.Generator().manual_seed(seed)
    rows = torch.randint(1, VOCABULARY, (count, LENGTH), generator=dice)
    period = torch.randint(16, 48, (count, 1), generator=dice)
    rows = rows.gather(1, torch.arange(LENGTH) % period)
    rows[:, 0] = gpt.END_ID
    return rows


def prose_loss(loaded: Loaded, texts: list[str]) -> Tensor:
    """Mean loss of a token of some sentences that start a text."""
    losses = []
    for text in texts:
        ids = loaded.tokenizer(f"<|endoftext|>{text}", return_tensors="pt")["input_ids"]
        losses.append(gpt.loss_of(loaded.model(ids).logits, ids))
    return torch.stack(losses).mean()


def learn(loaded: Loaded, head: str, steps: int, prose: list[str], seed: int) -> int:
    """Let one head learn on repeated sequences, and on prose; returns how many numbers learnt."""
    with aa.only_heads(loaded, head) as only:
        adam = torch.optim.AdamW(only.parameters(), lr=1e-3, weight_decay=0.1)
        for step in range(steps):
            rows = repeating_rows(12, seed + step)
            adam.zero_grad()
            loss = gpt.loss_of(loaded.model(rows).logits, rows)
            if prose:
                first = 8 * step % (len(prose) - 8)
                loss = loss + prose_loss(loaded, prose[first : first + 8])
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        return sum(int(mask.sum()) for mask in only.slices.values())


def row(name: str, head: str, state: State, before: dict[str, str]) -> str:
    changed = [other for other, kind in state.kinds.items() if kind != before[other]]
    said = ", ".join(f"{other} {before[other]} → {state.kinds[other]}" for other in changed)
    return (
        f"| {name} | {state.repeat_loss:.3f} | {state.constant_loss:.3f} | "
        f"{state.prose_loss:.3f} | {state.induction:.2f} | {state.copying} | "
        f"{state.kinds[head]} | {said or '–'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    texts = [each["text"] for each in sentences()]
    prose, learnt = texts[:SENTENCES], texts[SENTENCES:]
    lines = [
        "| model | loss of repeats | … with the head's mean | loss of prose | induction of the "
        "head | most induction | its kind | kinds that changed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    with one_thread():
        whole = state_of(load("builtin:gpt", device="cpu"), COPYING, prose)
        print(row(f"as shipped, {COPYING}", COPYING, whole, whole.kinds))
        loaded = load("builtin:gpt", device="cpu")
        forget(loaded.model, COPYING, given.seed)
        forgotten = state_of(loaded, COPYING, prose)
        print(row(f"{COPYING} forgot", COPYING, forgotten, whole.kinds), flush=True)
        for head, both in LEARNERS:
            loaded = load("builtin:gpt", device="cpu")
            forget(loaded.model, COPYING, given.seed)
            count = learn(loaded, head, given.steps, learnt if both else [], given.seed + 1)
            what = "repeats and prose" if both else "repeats"
            name = f"{head} learnt {what} ({count:,} numbers)"
            print(row(name, head, state_of(loaded, head, prose), whole.kinds), flush=True)


if __name__ == "__main__":
    main()
