"""Which parameters make a head's queries and keys, and are the two alike?

Linear layers inside an attention module are watched during the trial (`linear.py`). The one whose
output has the direction of a head's query made it; so no layer names are needed, and fused layers
are split. A few tokens are compared, or only the first, which rotary positions do not turn. If no
layer matches (for example because of a norm after the projection), or if its parameters are
quantised or not in memory, the correlation is NaN.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.watch.linear import TOKENS

_ALIKE = 0.999  # cosine between a projection's output and what entered the dot product


def weight_correlations(plan: Trial) -> dict[str, list[float]]:
    """Return `tower.Lnumber` → Pearson's correlation of each head's query and key parameters."""
    correlations = {}
    for layer in plan.layers:
        call = layer.first
        linear_outputs = plan.made.get(call.module, [])
        query, key = (side[0, :, :TOKENS].float() for side in (call.query, call.key))  # (H, n, D)
        if not query.shape[-1]:
            continue
        queries, keys = (makers(side, linear_outputs) for side in (query, key))
        group = max(1, len(queries) // max(1, len(keys)))
        name = f"{plan.names[layer.tower_key]}.L{layer.number}"
        correlations[name] = _alike(queries, [keys[head // group] for head in range(len(queries))])
    return correlations


def makers(vectors: Tensor, linear_outputs: list[tuple[nn.Module, Tensor]]) -> list[Tensor | None]:
    """Return for each head the rows (D, width) of the parameter that made its (n, D) vectors."""
    heads, n, size = vectors.shape
    makers: list[Tensor | None] = [None] * heads
    for count in (n, 1):
        wanted = normalize(vectors[:, :count].flatten(1), dim=1)
        for module, output in linear_outputs:
            if output.shape[1] % size or len(output) < count:
                continue
            parts = output[:count].view(count, -1, size).transpose(0, 1).flatten(1)
            cosine, best = (wanted @ normalize(parts, dim=1).T).max(1)
            weight: Any = module.weight
            if weight.is_meta or not weight.is_floating_point():
                continue
            wide = output.shape[1]
            rows = weight if weight.shape[0] == wide else weight.T  # GPT-2 stores the transpose
            for head, (alike, part) in enumerate(zip(cosine.tolist(), best.tolist(), strict=True)):
                if makers[head] is None and alike >= _ALIKE:
                    start = part * size
                    makers[head] = torch.as_tensor(rows[start : start + size]).detach().float()
        if all(maker is not None for maker in makers):
            break
    return makers


def _alike(queries: list[Tensor | None], keys: list[Tensor | None]) -> list[float]:
    """Correlate the parameters of each head's queries and keys, all heads of a shape at once."""
    correlations = [float("nan")] * len(queries)
    by_shape: dict[torch.Size, list[tuple[int, Tensor, Tensor]]] = {}
    for head, (query, key) in enumerate(zip(queries, keys, strict=True)):
        if query is not None and key is not None and query.shape == key.shape:
            by_shape.setdefault(query.shape, []).append((head, query, key))
    for pairs in by_shape.values():
        heads, *sides = zip(*pairs, strict=True)
        x, y = (torch.stack(side).flatten(1) for side in sides)
        x, y = (side - side.mean(1, keepdim=True) for side in (x, y))
        xy, xx, yy = (torch.linalg.vecdot(*pair) for pair in ((x, y), (x, x), (y, y)))
        found = xy / (xx.sqrt() * yy.sqrt())  # 0 / 0 is NaN
        for head, value in zip(heads, found.tolist(), strict=True):
            correlations[head] = value
    return correlations
