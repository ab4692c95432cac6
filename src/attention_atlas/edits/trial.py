"""Is what is recorded of an edited model what the edited model computed?

The way was found on the plain model. Now the same inputs run with edits: recomputed weights are
compared with those that the edited model used, and each layer's output with that of an edited run
that nobody records. So the receipt of an edited atlas is as true as that of a plain one.
"""

from dataclasses import replace
from typing import Any

from torch import Tensor

from attention_atlas.edits.anatomy import Anatomy
from attention_atlas.edits.apply import opened
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.watch import watching_edited
from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.record.prove.receipt import Comparison, Trial
from attention_atlas.record.prove.witnesses import output_differences
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.watch.module_outputs import module_outputs
from attention_atlas.record.watch.setting import Setting


def edited_trial(
    loaded: Loaded,
    items: dict[int, Encoded],
    plain: Trial,
    stack: Stack,
    known: Anatomy,
    seed: int = 0,
) -> Trial:
    """Return the trial of an edited model, on the inputs (by their numbers) of its plain trial."""
    comparison = EditedComparison(loaded.model, plain, stack, known, seed)
    together = [list(items)] if not plain.alone else [[number] for number in items]
    for numbers in together:
        stack.numbers = tuple(numbers)
        comparison.add(*collate([items[number] for number in numbers], loaded))
    trial = comparison.trial(plain.alone)
    receipt = replace(
        trial.receipt, missing=plain.receipt.missing, not_taken=plain.receipt.not_taken
    )
    return replace(trial, receipt=receipt, made=plain.made)


class EditedComparison(Comparison):
    """A comparison of what is recorded of an edited model with edited runs that nobody records."""

    def __init__(self, model: Any, plain: Trial, stack: Stack, known: Anatomy, seed: int):
        super().__init__(model, plain.way, seed)
        self.fast = plain.fast
        self._plain, self._stack, self._known = plain, stack, known

    def observed(self, tensors: dict[str, Tensor]) -> list[Call]:
        """Return the calls of one batch with edits."""
        watch = watching_edited(self.model, self._stack, self.way, detail=True, seed=self.seed)
        return watch(tensors)

    def beside_plain(
        self, tensors: dict[str, Tensor], layers: list[LayerCalls], calls: list[Call]
    ) -> dict[str, float]:
        """Return the error of each module's output against an edited run that is not recorded."""
        modules = {layer.first.module for layer in layers}
        watch = watching_edited(self.model, self._stack, self.way, fast=self.fast, seed=self.seed)
        with module_outputs(self.model, modules) as watched:
            watch(tensors)
        with (
            Setting(self.model, "eager", self.seed).held(),
            opened(self.model, self._stack, self._known),
            module_outputs(self.model, modules) as alone,
        ):
            self.model(**tensors)
        return output_differences(alone, watched)

    def trial(self, alone: bool) -> Trial:
        """Return the trial; a tower is causal as it is plainly, wherever edited heads look."""
        for (tower, _), finding in self.findings.items():
            finding.causal = tower in self._plain.causal
        return super().trial(alone)
