"""Which weights make a head's queries and keys, and are the two alike?

Linear layers inside an attention module are watched while the probe runs (`linear.py`). The one
whose output points the way a head's query does is what made it; so no layer is known by its name,
and fused layers are taken apart. A few tokens are compared, or the first alone, which rotary
positions do not turn. Where nothing fits (a norm after the projection, say) there is no answer.
"""

from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.record.linear import TOKENS
from attention_atlas.record.receipt import Plan

_ALIKE = 0.999  # cosine of what a projection gave and what entered the dot product


def weight_correlations(plan: Plan) -> dict[str, list[float]]:
    """`tower.Lnumber` → Pearson's correlation of the query and key weights of each head, or NaN."""
    found = {}
    for layer in plan.layers:
        call = layer.first
        made = plan.made.get(call.module, [])
        query, key = (side[0, :, :TOKENS].float() for side in (call.query, call.key))  # (H, n, D)
        if not query.shape[-1]:
            continue
        queries, keys = ([_maker(one, made) for one in side] for side in (query, key))
        group = max(1, len(queries) // max(1, len(keys)))
        name = f"{plan.names[layer.group]}.L{layer.number}"
        found[name] = [_alike(one, keys[at // group]) for at, one in enumerate(queries)]
    return found


def _maker(vector: Tensor, made: list[tuple[nn.Module, Tensor]]) -> Tensor | None:
    """(D, width): the rows of the weight that made a head's (n, D) vectors."""
    size = vector.shape[-1]
    for count in (len(vector), 1):
        for module, output in made:
            if output.shape[1] % size or len(output) < count:
                continue
            parts = output[:count].view(count, -1, size).transpose(0, 1).flatten(1)
            wanted = vector[:count].flatten()[None]
            cosine = torch.nn.functional.cosine_similarity(parts, wanted, dim=1)
            best = int(cosine.argmax())
            if float(cosine[best]) < _ALIKE:
                continue
            weight: Any = module.weight
            wide = output.shape[1]
            rows = weight if weight.shape[0] == wide else weight.T  # GPT-2 stores the transpose
            return torch.as_tensor(rows[best * size : (best + 1) * size]).detach().float()
    return None


def _alike(query: Tensor | None, key: Tensor | None) -> float:
    if query is None or key is None or query.shape != key.shape:
        return float("nan")
    both = torch.stack([query.flatten(), key.flatten()]).double()
    both = both - both.mean(1, keepdim=True)
    size = both.norm(dim=1).prod()
    return float((both[0] * both[1]).sum() / size) if float(size) > 0 else float("nan")
