"""What happens to a batch that does not fit into memory?"""

import gc
from collections.abc import Callable
from dataclasses import dataclass

import torch

from attention_atlas.names.errors import ModelError
from attention_atlas.names.out_of_memory import is_out_of_memory
from attention_atlas.record.write.batches import Numbered, token_count


@dataclass
class Fitting:
    """Runs batches, in halves if they do not fit; remembers how much was too much."""

    too_much: float = float("inf")  # padded tokens of the smallest batch that did not fit

    def run(self, batch: list[Numbered], add: Callable[[list[Numbered]], None]) -> None:
        """Add a batch; halve it for as long as it does not fit into memory."""
        if len(batch) > 1 and padded(batch) >= self.too_much:
            self._halve(batch, add)
            return
        try:
            add(batch)
            return
        except Exception as problem:
            if not is_out_of_memory(problem):
                raise
            if len(batch) == 1:
                raise ModelError(_alone(batch[0], problem)) from problem
        # Outside of `except`, since the traceback there keeps the tensors of the failed batch.
        self.too_much = min(self.too_much, padded(batch))
        free_memory()
        self._halve(batch, add)

    def _halve(self, batch: list[Numbered], add: Callable[[list[Numbered]], None]) -> None:
        middle = len(batch) // 2
        self.run(batch[:middle], add)
        self.run(batch[middle:], add)


def padded(batch: list[Numbered]) -> int:
    """Return how many tokens a batch has with its padding."""
    return len(batch) * max(token_count(numbered) for numbered in batch)


def free_memory() -> None:
    """Give back the memory of tensors that nothing refers to."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _alone(numbered: Numbered, problem: BaseException) -> str:
    first = str(problem).strip().splitlines() or [type(problem).__name__]
    return (
        f"input {numbered[0]} of {token_count(numbered)} tokens does not fit into memory, even "
        f"alone ({first[0][:120]}); what was captured before is kept: free memory or take a larger "
        "device and run the same command again to resume, or leave this input out"
    )
