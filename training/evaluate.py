"""What can the trained models do, and which of their heads do what?

    python -m training.evaluate WORK MODELS

reads MODELS/gpt, MODELS/bert and MODELS/vit as any user would and writes figures.json into each.
Nothing here was seen in training: stretches of the books that were held out, images of another
seed.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
)

from training import bert, gpt, heads, vit
from training.baseline import Counts
from training.draw import KINDS, Pencil
from training.prepare import POSITIONS, VOCABULARY
from training.text import Stream

Figures = dict[str, Any]

PERIOD = 100


def size_of(model: Any) -> int:
    return sum(weights.numel() for weights in model.parameters())


def gpt_figures(work: Path, folder: Path) -> Figures:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    stream = Stream.load(work / "gpt" / "held_out.npz")
    counts = Counts.of(Stream.load(work / "gpt" / "train.npz"), VOCABULARY)
    rows = gpt.held_out_rows(stream)
    with torch.no_grad():
        losses = [gpt.loss_of(model(row[None]).logits, row[None]).item() for row in rows]
    repeated = gpt.repeated_rows(16, PERIOD, seed=7)
    on_repeats = heads.attentions(model, input_ids=repeated)
    on_prose = heads.attentions(model, input_ids=rows[:32])
    by_head = {
        "induction": heads.table(heads.induction(w, PERIOD) for w in on_repeats),
        "previous_token": heads.table(map(heads.previous_token, on_prose)),
        "first_token": heads.table(map(heads.first_token, on_prose)),
    }
    return {
        "parameters": size_of(model),
        "held_out_tokens": rows.shape[0] * (rows.shape[1] - 1),
        "held_out_loss": sum(losses) / len(losses),
        "unigram_loss": counts.unigram_loss(stream.tokens[1:]),
        "bigram_loss": counts.bigram_loss(stream.tokens[:-1], stream.tokens[1:]),
        "strongest": {name: heads.best(scores) for name, scores in by_head.items()},
        "heads": by_head,
    }


def masked_logits(model: Any, batch: bert.Batch, masked: Tensor) -> Tensor:
    with torch.no_grad():
        hidden = model.bert(**batch.inputs()).last_hidden_state
        return torch.as_tensor(model.cls(hidden[masked]))  # (masked tokens, V)


def bert_figures(work: Path, folder: Path) -> Figures:
    """Here every chosen token is masked; counting is given the true neighbours, BERT is not."""
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    counts = Counts.of(Stream.load(work / "bert" / "train.npz"), VOCABULARY)
    held_out = Stream.load(work / "bert" / "held_out.npz")
    drawn = bert.Rows(held_out, torch.device("cpu"), seed=7).batch(256, POSITIONS)
    masked = drawn.labels != bert.IGNORED
    shown = drawn.tokens.masked_fill(masked, bert.MASK)
    batch = bert.Batch(shown, drawn.segments, drawn.attended, drawn.labels)
    target = drawn.labels[masked]
    logits = masked_logits(model, batch, masked)
    one_segment = bert.Batch(shown, 0 * drawn.segments, drawn.attended, drawn.labels)
    unaware = masked_logits(model, one_segment, masked)

    truth = torch.where(masked, drawn.labels, drawn.tokens)
    before = truth.roll(1, 1)[masked].numpy()
    after = truth.roll(-1, 1)[masked].numpy()
    full = drawn.attended.all(1)
    weights = heads.attentions(model, **{n: t[full][:32] for n, t in batch.inputs().items()})
    separators = shown[full][:32] == bert.SEP
    by_head = {
        "previous_token": heads.table(map(heads.previous_token, weights)),
        "next_token": heads.table(map(heads.next_token, weights)),
        "first_token": heads.table(map(heads.first_token, weights)),
        "separators": heads.table(heads.onto(w, separators) for w in weights),
    }
    return {
        "parameters": size_of(model),
        "masked_tokens": len(target),
        "held_out_loss": F.cross_entropy(logits, target).item(),
        "held_out_accuracy": (logits.argmax(1) == target).float().mean().item(),
        "loss_without_segments": F.cross_entropy(unaware, target).item(),
        "unigram_loss": counts.unigram_loss(target.numpy()),
        "bigram_loss": counts.bigram_loss(before, target.numpy()),
        "neighbours_loss": counts.neighbours_loss(before, target.numpy(), after),
        "strongest": {name: heads.best(scores) for name, scores in by_head.items()},
        "heads": by_head,
    }


def vit_figures(work: Path, folder: Path) -> Figures:
    model = AutoModelForImageClassification.from_pretrained(folder, dtype=torch.float32).eval()
    images, labels = Pencil(torch.device("cpu"), seed=7).draw(each=200)
    with torch.no_grad():
        parts = [model(vit.pixels(part)).logits for part in images.chunk(24)]
    logits = torch.cat(parts)
    right = (logits.argmax(1) == labels).float()
    by_kind = right.view(len(KINDS), -1).mean(1)
    weights = heads.attentions(model, pixel_values=vit.pixels(images[::20]))
    by_head = {
        "own_patch": heads.table(w.diagonal(dim1=2, dim2=3).mean((0, 2)) for w in weights),
        "first_token": heads.table(map(heads.first_token, weights)),
    }
    return {
        "parameters": size_of(model),
        "held_out_images": len(labels),
        "held_out_loss": F.cross_entropy(logits, labels).item(),
        "held_out_accuracy": right.mean().item(),
        "chance": 1 / len(KINDS),
        "accuracy_by_kind": dict(zip(KINDS, by_kind.tolist(), strict=True)),
        "strongest": {name: heads.best(scores) for name, scores in by_head.items()},
        "heads": by_head,
    }


EVALUATIONS = {"gpt": gpt_figures, "bert": bert_figures, "vit": vit_figures}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--only", choices=EVALUATIONS, nargs="+", default=list(EVALUATIONS))
    given = parser.parse_args()
    for name in given.only:
        figures = rounded(EVALUATIONS[name](given.work, given.models / name))
        text = json.dumps(figures, indent=1)
        (given.models / name / "figures.json").write_text(text + "\n")
        print(name, json.dumps({k: v for k, v in figures.items() if k != "heads"}, indent=1))


if __name__ == "__main__":
    main()
