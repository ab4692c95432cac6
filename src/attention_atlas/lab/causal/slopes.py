"""What do gradients foretell of exchanging each head? One pass forward and back gives all heads.

To first order the loss changes by the change of what the head moves times the slope of the loss
along it. Alone this is often wrong, even in sign: it only serves to make an estimate less noisy.
"""

import numpy as np
import torch
from torch import Tensor

from attention_atlas.edits.anatomy import DOORS
from attention_atlas.edits.apply import editing
from attention_atlas.lab.causal.exchange import Moved
from attention_atlas.lab.causal.sweep import Sweep, by_place
from attention_atlas.lab.causal.task import Group, losses, with_own_answers
from attention_atlas.measure.arrays import Floats
from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.door import Passing
from attention_atlas.record.watch.setting import Setting


class MovedWithSlopes(Moved):
    """What the heads move in one pass that can be differentiated."""

    def keep(self, passing: Passing) -> None:
        """Keep what the heads of a call move, as a place where slopes are read."""
        if not passing.output.requires_grad:  # of a model whose weights are fixed
            passing.output = passing.output.detach().requires_grad_()
        self.by_place[self.place(passing)] = passing.output


def slopes(sweep: Sweep, group: Group) -> Floats:
    """Return the effect of each head on a group to first order, (B, heads)."""
    loaded, known = sweep.loaded, sweep.known
    if known.way not in DOORS:
        raise ModelError(
            f"{loaded.name} does not call transformers' attention function, so it has no gradients "
            "for a budget; leave the budget out"
        )
    moved = MovedWithSlopes()
    setting = Setting(loaded.model, "sdpa" if known.fast else "eager", gradients=True)
    with setting.held(), editing(loaded, [], known) as stack:
        stack.on_call = moved.keep
        logits = by_place(loaded.model(**group.tensors).logits)
        if sweep.task.kind == "label":
            group = with_own_answers(group, logits)
        places = list(moved.by_place)
        followed = [moved.by_place[place] for place in places]
        found = torch.autograd.grad(losses(logits, group).sum(), followed, allow_unused=True)
    by_site: dict[tuple[str, int], Tensor] = {}
    for place, output, slope in zip(places, followed, found, strict=True):
        if slope is None:
            slope = torch.zeros_like(output)
        change = sweep.pool.instead(place, group.numbers, output.detach()) - output.detach()
        effect = (change.double() * slope.double()).sum((1, 3))  # (B, H)
        by_site[place[:2]] = by_site.get(place[:2], 0) + effect
    ordered = [by_site[layer.module, layer.visit] for layer in known.layers]
    return np.asarray(torch.cat(ordered, 1).cpu().numpy())
