"""builtin:bert, a small BERT that fills in masked words, alone and in pairs.

    python -m training.bert WORK OUT [--device cuda]

A row is `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, where A and B are runs of sentences. B follows
A in the book, or, one time in four, comes from elsewhere: whether the other segment helps is
something to be learnt. Short and long batches take turns, so all positions are seen.
"""

import argparse
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from training.fit import Plan, Row, fit, write_curve
from training.folder import copy_tokenizer, save_model
from training.prepare import POSITIONS, VOCABULARY
from training.text import Stream

PAD, UNKNOWN, CLS, SEP, MASK = range(5)
SPECIALS = 5
SHORT = 64
ALONE = 0.4
FROM_ELSEWHERE = 0.25
MASKED = 0.15
IGNORED = -100


def configuration() -> BertConfig:
    return BertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=POSITIONS,
        hidden_size=144,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=432,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )


@dataclass(frozen=True)
class Batch:
    """What the model is given, (rows, N) each, and the labels: the token where it is masked."""

    tokens: Tensor
    segments: Tensor
    attended: Tensor
    labels: Tensor

    def inputs(self) -> dict[str, Tensor]:
        return {
            "input_ids": self.tokens,
            "token_type_ids": self.segments,
            "attention_mask": self.attended,
        }


class Rows:
    """Rows of one or two segments with some tokens masked, on one device."""

    def __init__(self, stream: Stream, device: torch.device, seed: int) -> None:
        self.tokens = torch.from_numpy(stream.tokens.astype("int64")).to(device)
        self.starts = torch.from_numpy(stream.starts.astype("int64")).to(device)
        self.random = torch.Generator(device).manual_seed(seed)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.random, device=self.random.device)

    def sentence(self, count: int) -> Tensor:
        """Numbers of sentences far enough from the end for the longest row."""
        last = int(torch.searchsorted(self.starts, len(self.tokens) - 2 * POSITIONS))
        return (self.uniform(count) * last).long()

    def run(self, sentence: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
        """Whole sentences that fit the room: tokens taken, and the sentence that follows.

        A first sentence that does not fit is cut.
        """
        start = self.starts[sentence]
        following = torch.searchsorted(self.starts, start + room, right=True) - 1
        taken = torch.where(following > sentence, self.starts[following] - start, room)
        return taken, torch.maximum(following, sentence + 1)

    def segments(self, count: int, width: int) -> tuple[Tensor, Tensor]:
        """Tokens and segment numbers (count, width); padding has segment -1."""
        room = width - 3
        alone = self.uniform(count) < ALONE
        share = torch.where(alone, 1.0, 0.25 + 0.5 * self.uniform(count))
        a = self.sentence(count)
        a_length, following = self.run(a, (room * share).long())
        elsewhere = self.uniform(count) < FROM_ELSEWHERE
        b = torch.where(elsewhere, self.sentence(count), following)
        b_length, _ = self.run(b, room - a_length)
        b_length = b_length.masked_fill(alone, 0)

        place = torch.arange(width, device=self.tokens.device).expand(count, width)
        a_end, b_start = (a_length + 1)[:, None], (a_length + 2)[:, None]
        b_end = b_start + b_length[:, None]
        in_b = place >= b_start
        source = torch.where(
            in_b, self.starts[b][:, None] + place - b_start, self.starts[a][:, None] + place - 1
        )
        tokens = self.tokens[source.clamp(0, len(self.tokens) - 1)]
        tokens = tokens.masked_fill(place == 0, CLS).masked_fill(place == a_end, SEP)
        tokens = tokens.masked_fill((place == b_end) & ~alone[:, None], SEP)
        padding = place > torch.where(alone[:, None], a_end, b_end)
        return tokens.masked_fill(padding, PAD), in_b.long().masked_fill(padding, -1)

    def batch(self, count: int, width: int) -> Batch:
        """BERT's recipe: of 15 % chosen, 8 in 10 masked, 1 in 10 random, 1 in 10 left alone."""
        tokens, segments = self.segments(count, width)
        chosen = (self.uniform(count, width) < MASKED) & (tokens >= SPECIALS)
        fate = self.uniform(count, width)
        stranger = (self.uniform(count, width) * (VOCABULARY - SPECIALS)).long() + SPECIALS
        shown = tokens.masked_fill(chosen & (fate < 0.8), MASK)
        shown = torch.where(chosen & (fate >= 0.9), stranger, shown)
        return Batch(
            shown,
            segments.clamp(min=0),
            (segments >= 0).long(),
            tokens.masked_fill(~chosen, IGNORED),
        )


def masked_loss(model: Any, batch: Batch) -> Tensor:
    """Mean loss where a token is masked; the wide vocabulary is computed only there."""
    hidden = model.bert(**batch.inputs()).last_hidden_state  # (rows, N, width)
    counted = batch.labels != IGNORED
    logits = model.cls(hidden[counted])
    return F.cross_entropy(logits.float(), batch.labels[counted])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--probe-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    torch.manual_seed(given.seed)
    device = torch.device(given.device)
    rows = Rows(Stream.load(given.work / "bert" / "train.npz"), device, given.seed + 1)
    held_out = Rows(Stream.load(given.work / "bert" / "held_out.npz"), device, given.seed + 2)
    kept = held_out.batch(256, POSITIONS)
    model = BertForMaskedLM(configuration()).to(device)
    shapes = cycle([(given.rows, POSITIONS), (2 * given.rows, SHORT)])

    def loss_of_a_batch() -> Tensor:
        return masked_loss(model, rows.batch(*next(shapes)))

    def probe() -> Row:
        return {"held_out_loss": masked_loss(model, kept).item()}

    plan = Plan(given.steps, rate=1e-3, warm_up=500, probe_every=given.probe_every, decay=0.05)
    curve = []
    for row in fit(model, loss_of_a_batch, probe, plan):
        curve.append(row)
        save_model(model, given.out)
        write_curve(curve, given.out / "curve.csv")
    copy_tokenizer(given.work / "bert", given.out)


if __name__ == "__main__":
    main()
