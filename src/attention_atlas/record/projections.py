"""Which weights make a head's queries and keys, and are the two alike?

Linear layers inside an attention module are watched while it runs. The one whose output points the
way a head's query does is what made it; so no layer is known by its name, and fused layers are
taken apart. A few tokens are compared, or the first alone, which rotary positions do not turn.
Where nothing fits (a norm after the projection, say) there is no answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.record.layers import layers_of
from attention_atlas.record.observe import Look
from attention_atlas.record.receipt import Plan

_TOKENS = 8  # the first ones of an input
_ALIKE = 0.999  # cosine of what a projection gave and what entered the dot product


def weight_correlations(
    loaded: Loaded, plan: Plan, item: Encoded, look: Look
) -> dict[str, list[float]]:
    """`tower.Lnumber` → Pearson's correlation of the query and key weights of each head, or NaN."""
    model = loaded.model
    tensors, _ = collate([item], loaded)
    modules = {layer.first.module for layer in plan.layers}
    with _outputs(model, modules) as outputs:
        layers = layers_of(look(tensors))
    found = {}
    for layer in layers:
        call = layer.first
        made = outputs.get(call.module, [])
        query, key = (side[0, :, :_TOKENS].float() for side in (call.query, call.key))  # (H, n, D)
        if not query.shape[-1]:
            continue
        queries, keys = ([_maker(one, made) for one in side] for side in (query, key))
        group = max(1, len(queries) // max(1, len(keys)))
        name = f"{plan.names[layer.group]}.L{layer.number}"
        found[name] = [_alike(one, keys[at // group]) for at, one in enumerate(queries)]
    return found


@contextmanager
def _outputs(
    model: nn.Module, modules: set[str]
) -> Iterator[dict[str, list[tuple[nn.Module, Tensor]]]]:
    """For each attention module what the linear layers in it gave for the first tokens."""
    seen: dict[str, list[tuple[nn.Module, Tensor]]] = {}
    hooks = []
    for name in modules:
        try:
            owner = model.get_submodule(name)
        except AttributeError:  # a name from output_attentions, not a part of the model
            continue
        for inner in owner.modules():
            weight = getattr(inner, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                hooks.append(inner.register_forward_hook(_keep(seen.setdefault(name, []))))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _keep(into: list[tuple[nn.Module, Tensor]]) -> Any:
    def hook(module: nn.Module, _args: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.dim() >= 2:
            into.append((module, output.detach().reshape(-1, output.shape[-1])[:_TOKENS].float()))

    return hook


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
