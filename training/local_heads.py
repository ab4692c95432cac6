"""Can one head learn what it has forgotten, while everything else stays as it is?

    python -m training.local_heads

The copying head of builtin:gpt forgets: its weights are drawn at random. Then one head learns on
random sequences that repeat: the same head, or another one in its place. Nothing else of the model
changes by one bit. Prints a table of losses, of how much the head looks at the token after the
earlier copy, and of the kinds of all heads, before and after.
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

PERIOD = 32
COPYING = "L4H5"
LEARNERS = (COPYING, "L4H0", "L5H0", "L1H0")
SPREAD = 0.02  # of the random weights, as a new GPT-2 has them


@dataclass(frozen=True)
class State:
    """What the model and one head do at one moment."""

    repeat_loss: float  # of the second copy
    prose_loss: float
    induction: float  # of the head
    kinds: dict[str, str]  # of every head


def state_of(loaded: Loaded, head: str, prose: list[str]) -> State:
    """Measure the model on repeated sequences and on prose."""
    model = loaded.model.eval()
    repeated = gpt.repeated_rows(32, PERIOD, seed=7)
    labels = repeated.clone()
    labels[:, : PERIOD + 2] = gpt.IGNORED
    layer, number = (int(part) for part in head[1:].split("H"))
    looks = heads.attentions(model, input_ids=repeated)[layer]
    with torch.no_grad():
        repeat_loss = gpt.loss_of(model(repeated).logits, labels).item()
        losses = [_prose_loss(loaded, text) for text in prose]
    return State(
        repeat_loss,
        sum(losses) / len(losses),
        float(heads.induction(looks, PERIOD)[number]),
        kinds_of(loaded, prose),
    )


def _prose_loss(loaded: Loaded, text: str) -> float:
    ids = loaded.tokenizer(f"<|endoftext|>{text}", return_tensors="pt")["input_ids"]
    return gpt.loss_of(loaded.model(ids).logits, ids).item()


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


def learn(model: nn.Module, head: str, steps: int, seed: int) -> int:
    """Let one head learn on repeated sequences; returns how many numbers learnt."""
    with aa.only_heads(model, head) as only:
        adam = torch.optim.AdamW(only.parameters(), lr=2e-3, weight_decay=0.1)
        for step in range(steps):
            rows = gpt.repeated_rows(16, PERIOD, seed=seed + step)
            adam.zero_grad()
            loss: Tensor = gpt.loss_of(model(rows).logits, rows)
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        return sum(int(mask.sum()) for mask in only.slices.values())


def row(name: str, head: str, state: State, before: dict[str, str]) -> str:
    changed = [other for other, kind in state.kinds.items() if kind != before[other]]
    said = ", ".join(f"{other} {before[other]} → {state.kinds[other]}" for other in changed)
    return (
        f"| {name} | {state.repeat_loss:.3f} | {state.prose_loss:.3f} | {state.induction:.2f} | "
        f"{state.kinds[head]} | {said or '–'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    prose = [each["text"] for each in sentences()[: given.sentences]]
    lines = [
        "| model | loss of repeats | loss of prose | induction of the head | its kind | kinds that "
        "changed |",
        "|---|---|---|---|---|---|",
    ]
    with one_thread():
        whole = state_of(load("builtin:gpt", device="cpu"), COPYING, prose)
        lines.append(row(f"as shipped, {COPYING}", COPYING, whole, whole.kinds))
        for head in LEARNERS:
            loaded = load("builtin:gpt", device="cpu")
            forget(loaded.model, COPYING, given.seed)
            if head == COPYING:
                forgotten = state_of(loaded, COPYING, prose)
                lines.append(row(f"{COPYING} forgot", COPYING, forgotten, whole.kinds))
            count = learn(loaded.model, head, given.steps, given.seed + 1)
            after = state_of(loaded, head, prose)
            lines.append(row(f"{head} learnt ({count:,} numbers)", head, after, whole.kinds))
            print(lines[-1], flush=True)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
