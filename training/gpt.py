"""builtin:gpt, a small GPT-2 that reads books and repeats what it has seen.

    python -m training.gpt WORK OUT [--device cuda]

Some rows repeat themselves with a period of their own: passages of the books, and sequences of
tokens drawn evenly. They teach the heads to find the earlier copy, which prose alone teaches a
model of this size slowly. Every token counts in the loss, and every kind of row may begin
anywhere: were the first copies left out, the model would tell the kinds apart by their first
tokens and keep its heads for the one kind that pays.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from training import heads
from training.fit import Plan, Row, fit, write_curve
from training.folder import copy_tokenizer, save_model
from training.prepare import POSITIONS, VOCABULARY
from training.text import Stream

END_ID = 0
WITHOUT_START = 0.25
AT_A_PARAGRAPH = 0.5
SHORTEST_PERIOD = 16
IGNORED = -100


def configuration() -> GPT2Config:
    return GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=POSITIONS,
        n_embd=192,
        n_layer=6,
        n_head=6,
        n_inner=576,
        resid_pdrop=0.05,
        embd_pdrop=0.05,
        attn_pdrop=0.0,
        bos_token_id=END_ID,
        eos_token_id=END_ID,
    )


@dataclass(frozen=True)
class Mix:
    """Shares of the rows that repeat themselves."""

    prose: float
    even: float


class Rows:
    """Training rows, cut from the books and made up, on one device."""

    def __init__(self, stream: Stream, device: torch.device, seed: int) -> None:
        self.tokens = torch.from_numpy(stream.tokens.astype("int64")).to(device)
        starts = torch.from_numpy(stream.starts.astype("int64")).to(device)
        self.starts = starts[starts < len(self.tokens) - POSITIONS]
        self.place = torch.arange(POSITIONS, device=device)
        self.random = torch.Generator(device).manual_seed(seed)

    def integers(self, high: int, *shape: int, low: int = 0) -> Tensor:
        return torch.randint(low, high, shape, generator=self.random, device=self.random.device)

    def prose(self, count: int) -> Tensor:
        """Running text (count, N), half of it from a paragraph's beginning."""
        begun = int(count * AT_A_PARAGRAPH)
        paragraph = self.starts[self.integers(len(self.starts), begun)]
        anywhere = self.integers(len(self.tokens) - POSITIONS, count - begun)
        return self.tokens[torch.cat([paragraph, anywhere])[:, None] + self.place]

    def even(self, count: int) -> Tensor:
        """Any token but `<|endoftext|>`, all as likely, (count, N)."""
        return self.integers(VOCABULARY, count, POSITIONS, low=1)

    def repeating(self, rows: Tensor) -> Tensor:
        """The beginning of each row, again and again."""
        period = self.integers(POSITIONS // 2, len(rows), 1, low=SHORTEST_PERIOD)
        return rows.gather(1, self.place % period)

    def started(self, rows: Tensor) -> Tensor:
        """`<|endoftext|>` put before most rows."""
        bare = self.integers(100, len(rows), 1) < 100 * WITHOUT_START
        return torch.where(bare, rows, F.pad(rows[:, :-1], (1, 0), value=END_ID))

    def batch(self, count: int, mix: Mix) -> Tensor:
        """Rows of all kinds, (count, N)."""
        even, again = int(count * mix.even), int(count * mix.prose)
        rows = [
            self.prose(count - even - again),
            self.repeating(self.prose(again)),
            self.repeating(self.even(even)),
        ]
        return self.started(torch.cat(rows))


def held_out_rows(stream: Stream) -> Tensor:
    """All held-out text as (rows, N): `<|endoftext|>`, then what fits, without overlap."""
    width = POSITIONS - 1
    count = len(stream.tokens) // width
    text = torch.from_numpy(stream.tokens[: count * width].astype("int64")).view(count, width)
    return F.pad(text, (1, 0), value=END_ID)


def repeated_rows(count: int, period: int, seed: int) -> Tensor:
    """Rows for the induction score: `<|endoftext|>`, then a random sequence twice."""
    random = torch.Generator().manual_seed(seed)
    once = torch.randint(1, VOCABULARY, (count, period), generator=random)
    return F.pad(torch.cat([once, once], 1), (1, 0), value=END_ID)


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of the next token; the label of a position is the token at it."""
    return F.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
    )


def probe(model: Any, prose: Tensor, repeated: Tensor) -> Row:
    period = (repeated.shape[1] - 1) // 2
    labels = repeated.clone()
    labels[:, : period + 2] = IGNORED
    found = heads.attentions(model, input_ids=repeated)
    plain = heads.attentions(model, input_ids=prose[:32])
    return {
        "held_out_loss": loss_of(model(prose).logits, prose).item(),
        "repeat_loss": loss_of(model(repeated).logits, labels).item(),
        "induction": max(heads.induction(w, period).max().item() for w in found),
        "previous_token": max(heads.previous_token(w).max().item() for w in plain),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=4200)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--repeat-prose", type=float, default=0.25)
    parser.add_argument("--repeat-even", type=float, default=0.15)
    parser.add_argument("--probe-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    torch.manual_seed(given.seed)
    device = torch.device(given.device)
    rows = Rows(Stream.load(given.work / "gpt" / "train.npz"), device, given.seed + 1)
    prose = held_out_rows(Stream.load(given.work / "gpt" / "held_out.npz"))[:64].to(device)
    repeated = repeated_rows(32, 100, seed=given.seed + 2).to(device)
    model = GPT2LMHeadModel(configuration()).to(device)
    # Probes read eager weights: they get a copy of the model, so that nothing is compiled twice.
    looked_at = GPT2LMHeadModel(configuration()).to(device).eval()
    mix = Mix(given.repeat_prose, given.repeat_even)

    def loss_of_rows(tokens: Tensor) -> Tensor:
        return loss_of(model(input_ids=tokens, use_cache=False).logits, tokens)

    fast = torch.compile(loss_of_rows) if device.type == "cuda" else loss_of_rows

    def loss_of_a_batch() -> Tensor:
        return fast(rows.batch(given.rows, mix))

    def probe_a_copy() -> Row:
        looked_at.load_state_dict(model.state_dict())
        return probe(looked_at, prose, repeated)

    plan = Plan(given.steps, rate=1.5e-3, warm_up=200, probe_every=given.probe_every)
    curve = []
    for row in fit(model, loss_of_a_batch, probe_a_copy, plan):
        curve.append(row)
        save_model(model, given.out)
        write_curve(curve, given.out / "curve.csv")
    copy_tokenizer(given.work / "gpt", given.out)


if __name__ == "__main__":
    main()
