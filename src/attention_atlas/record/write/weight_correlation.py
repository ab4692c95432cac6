"""Which weights make a head's queries and keys, and are the two alike?

Linear layers inside an attention module are watched while the probe runs (`linear.py`). The one
whose output points the way a head's query does is what made it; so no layer is known by its name,
and fused layers are taken apart. A few tokens are compared, or the first alone, which rotary
positions do not turn. Where nothing fits (a norm after the projection, say) there is no answer.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.watch.linear import TOKENS

_ALIKE = 0.999  # cosine of what a projection gave and what entered the dot product


def weight_correlations(plan: Trial) -> dict[str, list[float]]:
    """`tower.Lnumber` → Pearson's correlation of the query and key weights of each head, or NaN."""
    found = {}
    for layer in plan.layers:
        call = layer.first
        made = plan.made.get(call.module, [])
        query, key = (side[0, :, :TOKENS].float() for side in (call.query, call.key))  # (H, n, D)
        if not query.shape[-1]:
            continue
        queries, keys = (_makers(side, made) for side in (query, key))
        group = max(1, len(queries) // max(1, len(keys)))
        name = f"{plan.names[layer.tower_key]}.L{layer.number}"
        found[name] = [_alike(one, keys[at // group]) for at, one in enumerate(queries)]
    return found


def _makers(vectors: Tensor, made: list[tuple[nn.Module, Tensor]]) -> list[Tensor | None]:
    """For each head (D, width): the rows of the weight that made its (n, D) vectors."""
    heads, n, size = vectors.shape
    found: list[Tensor | None] = [None] * heads
    for count in (n, 1):
        wanted = normalize(vectors[:, :count].flatten(1), dim=1)
        for module, output in made:
            if output.shape[1] % size or len(output) < count:
                continue
            parts = output[:count].view(count, -1, size).transpose(0, 1).flatten(1)
            cosine, best = (wanted @ normalize(parts, dim=1).T).max(1)
            weight: Any = module.weight
            wide = output.shape[1]
            rows = weight if weight.shape[0] == wide else weight.T  # GPT-2 stores the transpose
            for head in range(heads):
                if found[head] is None and float(cosine[head]) >= _ALIKE:
                    at = int(best[head]) * size
                    found[head] = torch.as_tensor(rows[at : at + size]).detach().float()
        if all(one is not None for one in found):
            break
    return found


def _alike(query: Tensor | None, key: Tensor | None) -> float:
    if query is None or key is None or query.shape != key.shape:
        return float("nan")
    x, y = (side.flatten() - side.mean() for side in (query, key))
    size = float(x.norm() * y.norm())
    return float(x @ y) / size if size > 0 else float("nan")
