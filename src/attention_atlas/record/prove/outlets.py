"""Where does what the heads move go? Asked of the model while it is tried, not of its names.

    attention ─ moved (B, N, H, E) ─▶ a module with a matrix of weights ─▶ what the layer gives

The output projection of a layer is the module with a matrix that is given exactly what the heads of
that layer moved. The same pass tells what the model reads its logits from: the last module with a
matrix (the unembedding, or a classifier), and the norm before it.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.record.watch.call import first_tensor
from attention_atlas.record.watch.door import Passing

ROWS = 64  # of what a projection gives are compared with the sum of the heads
TOKENS = 8  # of what other modules are given and give
LATE = 12  # modules at the end of a pass, among which norm and unembedding must be

SiteKey = tuple[str, int]  # path of the attention module, visit


@dataclass(frozen=True)
class Outlet:
    """The projection of one attention layer, with the first rows that it gave."""

    module: str
    gave: Tensor  # (R, width)
    event: int  # when it ran, among all modules


@dataclass(frozen=True)
class ModuleRun:
    """One run of one module: the first tokens that it was given and gave."""

    module: str
    given: Tensor | None  # (tokens, width)
    gave: Tensor
    matrix: bool
    whole: bool  # it has no modules inside, so it ran between its neighbours in time


@dataclass(frozen=True)
class LogitsRead:
    """What the logits are read from: factor · norm(stream), of every token or of one."""

    norm: str
    unembedding: str
    factor: float
    place: str  # "each", "first" or "last": the token that is read
    event: int  # when the norm ran


@dataclass
class Outlets:
    """A hook that finds the projection of every attention call, and what reads the logits."""

    model: Any
    needs_weights: bool = False
    found: dict[SiteKey, Outlet] = field(default_factory=dict)
    events: list[ModuleRun] = field(default_factory=list)
    read: LogitsRead | None = None
    no_logits: str = "this model gives no logits"

    def __post_init__(self) -> None:
        self._site: SiteKey | None = None
        self._moved: Tensor | None = None
        self._late: deque[tuple[int, str, Tensor | None, Tensor]] = deque(maxlen=LATE)

    def before(self, passing: Passing) -> None:
        """Do nothing: what is moved is known after the call."""

    def after(self, passing: Passing) -> None:
        """Remember what the heads of this call moved."""
        self._site = (passing.site.module, passing.site.visit)
        self._moved = passing.output

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at every module of the model inside the block."""
        hooks = [
            module.register_forward_hook(self._hook(name, module))
            for name, module in self.model.named_modules()
        ]
        try:
            yield
        finally:
            self._moved = None
            self._late.clear()
            for hook in hooks:
                hook.remove()

    def _hook(self, name: str, module: nn.Module) -> Any:
        weight = getattr(module, "weight", None)
        matrix = isinstance(weight, Tensor) and weight.dim() == 2
        whole, thread = not any(module.children()), get_ident()

        def hook(_module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if get_ident() != thread:
                return
            gave = first_tensor(output)
            if not name:
                self._end(output)
            elif gave is not None and gave.dim() >= 2 and gave.is_floating_point():
                given = args[0] if args and isinstance(args[0], Tensor) else None
                self._add(name, given, gave, (matrix, whole))

        return hook

    def _add(self, name: str, given: Tensor | None, gave: Tensor, kind: tuple[bool, bool]) -> None:
        if kind[0] and given is not None and self._is_moved(given):
            assert self._site is not None
            # A wrapper (an adapter) runs its inner module first; the outer one is the projection.
            self.found[self._site] = Outlet(name, first_rows(gave, ROWS), len(self.events))
        self._late.append((len(self.events), name, given, gave))
        first = None if given is None or given.dim() < 2 else first_rows(given, TOKENS)
        self.events.append(ModuleRun(name, first, first_rows(gave, TOKENS), *kind))

    def _is_moved(self, given: Tensor) -> bool:
        moved = self._moved
        if moved is None or given.numel() != moved.numel() or moved.dim() != 4:
            return False
        if given.shape[-1] != moved.shape[-1] * moved.shape[-2]:
            return False
        return bool(torch.equal(given.reshape(-1), moved.reshape(-1)))

    def _end(self, output: Any) -> None:
        """Find out what the logits were read from, now that the pass is over."""
        logits = getattr(output, "logits", None)
        if not isinstance(logits, Tensor) or self.read is not None:
            return
        ran = list(self._late)
        head = next((at for at in reversed(range(len(ran))) if self._is_head(ran[at], logits)), -1)
        if head < 0 or ran[head][2] is None:
            self.no_logits = "the logits of this model are not what one linear module gives"
            return
        reads = []
        for event, name, given, gave in ran[:head]:
            place = None if _same(given, gave) else _place(ran[head][2], gave)
            if given is not None and given.shape == gave.shape and place is not None:
                reads.append(LogitsRead(name, ran[head][1], place[1], place[0], event))
        if not reads:
            self.no_logits = "what the unembedding of this model is given is not what a norm gives"
            return
        # Of one token alone, a norm without gain gives a multiple of what the layer before it gave.
        self.read = next((read for read in reads if abs(read.factor - 1) < 1e-6), reads[0])

    def _is_head(self, ran: tuple[int, str, Tensor | None, Tensor], logits: Tensor) -> bool:
        _, name, _, gave = ran
        module = self.model.get_submodule(name)
        weight = getattr(module, "weight", None)
        if not isinstance(weight, Tensor) or weight.dim() != 2:
            return False
        named = getattr(self.model, "get_output_embeddings", lambda: None)()
        return module is named or _same(gave, logits)


def first_rows(tensor: Tensor, count: int) -> Tensor:
    """Return a copy of the first rows (count, width) of a tensor (…, width)."""
    return tensor.detach().reshape(-1, tensor.shape[-1])[:count].clone()


def _same(one: Tensor | None, two: Tensor) -> bool:
    return one is not None and one.shape == two.shape and bool(torch.equal(one, two))


def _place(given: Tensor | None, gave: Tensor) -> tuple[str, float] | None:
    """Return which token's output a module was given, and the factor between; None: neither."""
    if given is None or gave.dim() != 3 or given.shape[-1] != gave.shape[-1]:
        return None
    if given.shape == gave.shape:
        candidates = {"each": gave}
    elif given.numel() == gave[:, 0].numel():
        # Where one logit a text is asked for, every token could be read, the last one is.
        last = "each" if given.dim() == 3 else "last"
        candidates = {last: gave[:, -1], "first": gave[:, 0]}
    else:
        return None
    for place, rows in candidates.items():
        one, two = given.reshape(-1).double(), rows.reshape(-1).double()
        size = float(two @ two)
        factor = float(one @ two) / size if size > 0 else 0.0
        near = float((one - factor * two).abs().max()) <= 1e-3 * float(one.abs().max())
        if factor > 0 and near:
            return place, factor
    return None
