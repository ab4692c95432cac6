"""Does what we recompute agree with the model, in each batch of the capture?

The receipt is made on the first tokens of a few inputs; other batches have other masks, padding and
lengths. So in every batch, rows of every layer are drawn at random, of every input. Their weights
are recomputed from the vectors that are kept, and what they move is compared with the output of the
model's own attention. The same rows show whether fp16 is fine enough for the stored vectors.

R rows of M keys cost R × M, in blocks, on the device of the model. A lone input gives 16 rows; a
batch of several gives 32, or 4 of each input if that is more, so that short inputs cost little. One
row is drawn from each of as many equal spans of an input's queries, so a fault that touches a share
p of a layer's rows is found with a probability of at least 1 − (1 − p)^R, and late rows are never
left out. The errors are kept row by row: which rows are padding is known later.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attention_atlas.record.watch.call import (
    Call,
    Sample,
    grouped_product,
    same_memory,
)

ROWS = 16  # of each sequence of a call, at the most
ROWS_TOGETHER = 32  # of all sequences of a call, unless that is
LEAST_ROWS = 4  # of each at the least
SEQUENCES = 32  # of one call: a picture may have thousands of windows
LARGEST = 4_000_000  # weights at once
STRONGEST = 8  # keys of a row that are compared again once they are on disk
# fp16 must keep weights within 1e-3 of the model's; for sampled rows the limit is half of that.
ROUNDING_LIMIT = 5e-4


@dataclass
class Lighten:
    """A function that reduces a call to what its rows showed and vectors in fp16, where enough.

    Where rows of a lone input show that fp16 is too coarse for a module, it is not rounded, and is
    added to `fine`.
    """

    fine: set[str] = field(default_factory=set)  # modules whose vectors stay as they are
    everything: bool = False  # round nothing
    seed: int = 0
    told: bool = False  # whether the strongest weights of rows are kept, to be compared on disk
    _last: tuple[Call, Call] | None = None

    def __post_init__(self) -> None:
        self._dice = torch.Generator().manual_seed(self.seed)

    def __call__(self, call: Call) -> Call:
        samples = samples_of(call, self._dice, self.told)
        light = replace(call, samples=samples, output=None)
        if not samples or self.everything:
            return light
        # A batch of several waits: its padding, which is not known here, does not count.
        if len(call.query) == 1 and call.query.device.type == "cpu" and _is_coarse(samples[0]):
            self.fine.add(call.module)
        return light if call.module in self.fine else self._in_half(light)

    def _in_half(self, call: Call) -> Call:
        """Return a call in fp16, but with float32 values if one is beyond the range of fp16."""
        low, high = torch.aminmax(call.value) if call.value.numel() else (0.0, 0.0)
        fits = max(-float(low), float(high)) < torch.finfo(torch.float16).max
        query, key = self._ends(call)
        value = call.value.half() if fits else call.value.float()
        light = replace(call, query=query, key=key, value=value)
        self._last = (call, light)
        return light

    def _ends(self, call: Call) -> tuple[Tensor, Tensor]:
        """Return queries and keys in fp16; successive calls that share them still do after."""
        if self._last is not None:
            before, light = self._last
            if all(same_memory(getattr(before, x), getattr(call, x)) for x in ("query", "key")):
                return light.query, light.key
        return call.query.half(), call.key.half()


def _is_coarse(sample: Sample) -> bool:
    return float(sample.rounding.nan_to_num(0.0).max()) > ROUNDING_LIMIT


def samples_of(call: Call, dice: torch.Generator, told: bool = False) -> tuple[Sample, ...]:
    """Return a sample of a call; none if it has no vectors. `told` keeps the strongest weights."""
    if not call.query.shape[-1] or not call.query.numel():
        return ()
    batch, _, n, _ = call.query.shape
    sequences = torch.arange(batch)
    if batch > SEQUENCES:
        sequences = torch.randperm(batch, generator=dice)[:SEQUENCES].sort().values
    rows = draw_rows(n, len(sequences), dice, rows_each(len(sequences)))
    sequences, rows = (drawn.to(call.query.device) for drawn in (sequences, rows))
    shown = _in_blocks(call, sequences, rows, told)
    return (Sample(batch, n, sequences, rows, *shown),)


def rows_each(sequences: int) -> int:
    """Return how many rows are drawn of each of so many sequences."""
    return min(ROWS, max(LEAST_ROWS, ROWS_TOGETHER // sequences))


def draw_rows(n: int, sequences: int, dice: torch.Generator, count: int = ROWS) -> Tensor:
    """Draw rows of n, (S, R): one of each of R equal spans, each row of a span as likely."""
    edges = torch.linspace(0, n, min(count, n) + 1, dtype=torch.float64).round().long()
    spans = edges.diff()
    drawn = (torch.rand(sequences, len(spans), generator=dice) * spans).long()
    return edges[:-1] + torch.minimum(drawn, spans - 1)


def at_rows(call: Call, sequences: Tensor, rows: Tensor) -> Call:
    """Return a copy of a call for some sequences and some queries of each; rows (S, R)."""
    keys = call.key.shape[2]
    whole = len(sequences) == len(call.query)

    def selected(x: Tensor) -> Tensor:
        return x if len(x) == 1 or whole else x[sequences]

    def vectors(x: Tensor) -> Tensor:
        # A product copies the vectors of several sequences: from (B, M, G, D), as models have
        # them, slowly and each time, and not at all from (B, G, M, D).
        return x if len(x) == 1 else selected(x).contiguous()

    def cut(term: Tensor | None) -> Tensor | None:  # rows may be shared, keys too many
        if term is None:
            return None
        term = selected(term)[..., :keys]
        if term.shape[-2] == 1:
            return term
        term = term.expand(len(rows), *term.shape[1:])
        return term[torch.arange(len(rows), device=rows.device)[:, None], :, rows].transpose(1, 2)

    mask = cut(call.mask)
    if mask is None and call.causal:
        mask = (torch.arange(keys, device=rows.device) <= rows[..., None])[:, None]
    places = sequences[:, None]
    return replace(
        call,
        query=call.query[places, :, rows].transpose(1, 2),
        key=vectors(call.key),
        value=vectors(call.value),
        mask=mask,
        bias=cut(call.bias),
        causal=False,
        weights=None,
        output=None if call.output is None else call.output[places, rows],
    )


def _in_blocks(call: Call, sequences: Tensor, rows: Tensor, told: bool) -> list[Tensor]:
    """Return what `_shown` returns of all rows, from so many at once as fit into memory."""
    count, width = rows.shape
    one = max(1, call.query.shape[1] * call.key.shape[2])  # weights of one row of all heads
    tall = max(1, LARGEST // (one * width))  # sequences at once
    wide = max(1, min(width, LARGEST // one))  # rows at once
    blocks = []
    for start in range(0, count, tall):
        here = slice(start, start + tall)
        parts = [
            _shown(at_rows(call, sequences[here], rows[here, row : row + wide]), told)
            for row in range(0, width, wide)
        ]
        blocks.append([torch.cat(part, 1) for part in zip(*parts, strict=True)])
    return [torch.cat(block) for block in zip(*blocks, strict=True)]


def _shown(call: Call, told: bool) -> tuple[Tensor, ...]:
    """Return what the rows of a call show: the fields of a Sample, each (S, R, …)."""
    weights = call.softmax(call.logits())  # (S, H, R, M)
    rounded = call.softmax(call.logits(half=True))
    rounding = (weights - rounded).abs().amax((1, 3))
    error, size = torch.zeros_like(rounding), torch.ones_like(rounding)
    if call.output is not None:
        moved = grouped_product(weights, call.value.float())  # (S, H, R, E)
        given = call.output.transpose(1, 2).float()
        error, size = (moved - given).abs().amax((1, 3)), given.abs().amax((1, 3))
    shown = (rounding, error, size, weights.amax(1).half())
    if not told:
        return shown
    strongest = weights.topk(min(STRONGEST, weights.shape[-1]), -1)
    return *shown, *(part.transpose(1, 2) for part in strongest)


@dataclass(frozen=True)
class Errors:
    """The largest errors of a sample: of weights by fp16 rounding, and of output (relative).

    Weight on padding counts as an error of the output, since an atlas has no column for it. `rows`
    were compared, of `of`; padding does not count.
    """

    rounding: float
    output: float
    rows: int
    of: int


def spot_check(sample: Sample, queries: Tensor | None, keys: Tensor | None) -> Errors:
    """Return the errors of a sample.

    queries, keys  (B, N) and (B, M) bool: which places are not padding; None: all
    """
    counts, of = torch.ones_like(sample.rows, dtype=torch.bool), sample.batch * sample.queries
    if queries is not None and queries.shape == (sample.batch, sample.queries):
        counts, of = real_rows(sample, queries), int(queries.sum())
    error, size = (part.nan_to_num(torch.inf) for part in (sample.error, sample.size))
    size = size.masked_fill(size.isinf() | ~counts, 0.0).amax(1, keepdim=True).clamp_min(1e-6)
    output = error / size
    if keys is not None and keys.shape == (sample.batch, sample.looked.shape[2]):
        pads = ~keys[sample.sequences.cpu()].to(sample.looked.device)
        output = torch.maximum(output, (sample.looked.float() * pads[:, None]).sum(-1))
    rounding = sample.rounding.nan_to_num(torch.inf)
    worst = torch.stack([rounding, output]).masked_fill(~counts, 0.0).amax((1, 2)).tolist()
    return Errors(worst[0], worst[1], int(counts.sum()), of)


def real_rows(sample: Sample, queries: Tensor) -> Tensor:
    """Return which rows of a sample are not padding, (S, R); queries (B, N) bool."""
    return queries[sample.sequences.cpu()].to(sample.rows.device).gather(1, sample.rows)
