"""The one training loop: AdamW, a warm-up, a cosine, and a line of the curve now and then."""

import csv
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

Row = dict[str, float]


@dataclass(frozen=True)
class Plan:
    """How long and how fast to learn."""

    steps: int
    rate: float
    warm_up: int
    probe_every: int
    decay: float = 0.1
    last: float = 0.02


def rate_at(step: int, plan: Plan) -> float:
    """Up in a line, then down a half cosine to `last` of the top."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / plan.steps))
    return plan.rate * min(1, (step + 1) / plan.warm_up) * (plan.last + (1 - plan.last) * cosine)


def optimizer(model: nn.Module, plan: Plan, device: torch.device) -> torch.optim.AdamW:
    """Only matrices decay; gains, biases and the like are left alone."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": plan.decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=device.type == "cuda")


def fit(
    model: nn.Module,
    loss_of_a_batch: Callable[[], Tensor],
    probe: Callable[[], Row],
    plan: Plan,
) -> Iterator[Row]:
    """Trains the model in place; yields what `probe` finds, with the step and training loss."""
    device = next(model.parameters()).device
    adam = optimizer(model, plan, device)
    model.train()
    start = time.perf_counter()
    for step in range(plan.steps):
        for group in adam.param_groups:
            group["lr"] = rate_at(step, plan)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = loss_of_a_batch()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        if step % plan.probe_every == 0 or step == plan.steps - 1:
            model.eval()
            with torch.no_grad():
                row = {"step": step, "train_loss": loss.item(), **probe()}
            model.train()
            said = "  ".join(f"{name} {value:.4g}" for name, value in row.items())
            print(f"{said}  {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            yield row


def write_curve(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([f"{value:.5g}" for value in row.values()] for row in rows)
