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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

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
Ends = tuple[Tensor, Tensor]  # queries and keys
Vectors = tuple[Tensor, Tensor, Tensor]  # queries, keys and values


@dataclass
class Lighten:
    """A function that reduces calls to what their rows showed and vectors in fp16, where enough.

    Where rows of a lone input show that fp16 is too coarse for a module, it is not rounded, and is
    added to `fine`.
    """

    fine: set[str] = field(default_factory=set)  # modules whose vectors stay as they are
    everything: bool = False  # round nothing
    seed: int = 0
    told: bool = False  # whether the strongest weights of rows are kept, to be compared on disk
    _last: tuple[Ends, Ends] | None = None  # as they were, and in fp16
    _fit: dict[str, Tensor] = field(default_factory=dict)  # on a GPU: whether values are in range

    def __post_init__(self) -> None:
        self._dice = torch.Generator().manual_seed(self.seed)

    def __call__(self, calls: Sequence[Call]) -> list[Call]:
        reduced = []
        for alike in _alike(calls):
            if not _has_vectors(alike[0]):
                reduced += [replace(call, output=None) for call in alike]
                continue
            halves = [self._half_of(call) for call in alike]
            keys = [half and half[1] for half in halves]
            samples = samples_of(alike, self._dice, self.told, keys)
            reduced += map(self._reduced, alike, halves, samples)
        return reduced

    def _half_of(self, call: Call) -> Vectors | None:
        return None if self.everything or call.module in self.fine else self._in_half(call)

    def _reduced(self, call: Call, half: Vectors | None, sample: Sample) -> Call:
        # A batch of several waits: its padding, which is not known here, does not count.
        lone = len(call.query) == 1 and call.query.device.type == "cpu"
        if half is not None and lone and _is_coarse(sample):
            self.fine.add(call.module)
            half = None
        query, key, value = half or (call.query, call.key, call.value)
        return replace(call, samples=(sample,), output=None, query=query, key=key, value=value)

    def _in_half(self, call: Call) -> Vectors:
        """Return the vectors in fp16, but float32 values if one is beyond the range of fp16."""
        query, key = self._ends(call)
        self._last = (call.query, call.key), (query, key)
        if not call.value.numel():
            return query, key, call.value.half()
        # As models have them, (B, M, G, E), they are read in the order of memory.
        low, high = torch.aminmax(call.value.transpose(1, 2))
        most = torch.finfo(torch.float16).max
        if call.value.device.type == "cpu":
            fits = max(-float(low), float(high)) < most
            return query, key, call.value.half() if fits else call.value.float()
        # To know it now, the model would wait for its GPU in every layer: `beyond` asks later.
        in_range = torch.maximum(-low, high) < most
        before = self._fit.get(call.module)
        self._fit[call.module] = in_range if before is None else in_range & before
        return query, key, call.value.half()

    def beyond(self) -> set[str]:
        """Return the modules whose values were beyond the range of fp16 since the last call.

        Only of a GPU; elsewhere such values are kept in float32 at once.
        """
        known, self._fit = self._fit, {}
        return {name for name, fits in known.items() if not fits}  # layers may be on several GPUs

    def _ends(self, call: Call) -> Ends:
        """Return queries and keys in fp16; successive calls that share them still do after."""
        if self._last is not None:
            before, half = self._last
            if all(same_memory(a, b) for a, b in zip(before, (call.query, call.key), strict=True)):
                return half
        return call.query.half(), call.key.half()


def _has_vectors(call: Call) -> bool:
    return bool(call.query.shape[-1] and call.query.numel())


def _is_coarse(sample: Sample) -> bool:
    return float(sample.rounding.nan_to_num(0.0).max()) > ROUNDING_LIMIT


def _alike(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Yield calls in order, as many at once as are looked at together: alike, and on one GPU.

    Fifty small operations on a layer take a GPU less time than they take Python to ask for.
    """
    group: list[Call] = []
    for call in calls:
        if group and not (call.query.is_cuda and _fits(group, call)):
            yield group
            group = []
        group.append(call)
    if group:
        yield group


def _fits(group: list[Call], call: Call) -> bool:
    """Tell whether a call is like those of a group, and their rows take little memory together."""
    batch, heads, n, _ = call.query.shape
    rows = min(SEQUENCES, batch) * min(n, rows_each(min(SEQUENCES, batch)))
    small = (len(group) + 1) * rows * heads * call.key.shape[2] <= LARGEST
    return small and call.sink is None and _likeness(call) == _likeness(group[0])


def _likeness(call: Call) -> tuple[object, ...]:
    """Return what calls have in common that are alike but for their vectors."""
    parts = call.query, call.key, call.value, call.output
    terms = call.mask, call.bias
    return (
        *(None if part is None else (part.shape, part.dtype, part.device) for part in parts),
        *(None if term is None else (term.data_ptr(), term.shape, term.stride()) for term in terms),
        call.scale, call.causal, call.softcap, call.sink is None,
    )  # fmt: skip


def samples_of(
    calls: Sequence[Call],
    dice: torch.Generator,
    told: bool = False,
    halves: Sequence[Tensor | None] = (),
) -> list[Sample]:
    """Return a sample of each of some calls with vectors, which are alike but for these.

    The same rows are drawn of all. `told` keeps their strongest weights.

    halves  their keys in fp16, where they are known
    """
    if not _has_vectors(calls[0]):
        return []
    batch, _, n, _ = calls[0].query.shape
    sequences = torch.arange(batch)
    if batch > SEQUENCES:
        sequences = torch.randperm(batch, generator=dice)[:SEQUENCES].sort().values
    rows = draw_rows(n, len(sequences), dice, rows_each(len(sequences)))
    sequences, rows = (
        drawn.to(calls[0].query.device, non_blocking=True) for drawn in (sequences, rows)
    )
    known = halves or [None] * len(calls)
    keys = [
        call.key.half() if half is None else half for call, half in zip(calls, known, strict=True)
    ]
    shown = _in_blocks(calls, keys, sequences, rows, told)
    each = zip(*(torch.split(part, len(sequences)) for part in shown), strict=True)
    return [Sample(batch, n, sequences, rows, *of_call) for of_call in each]


def rows_each(sequences: int) -> int:
    """Return how many rows are drawn of each of so many sequences."""
    return min(ROWS, max(LEAST_ROWS, ROWS_TOGETHER // sequences))


def draw_rows(n: int, sequences: int, dice: torch.Generator, count: int = ROWS) -> Tensor:
    """Draw rows of n, (S, R): one of each of R equal spans, each row of a span as likely."""
    starts, spans, last = _spans(n, min(count, n))
    drawn = (torch.rand(sequences, len(spans), generator=dice) * spans).long()
    return starts + torch.minimum(drawn, last)


@lru_cache(maxsize=64)
def _spans(n: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return, of equal spans of n rows, the first row, the length, and the length less one."""
    edges = torch.linspace(0, n, count + 1, dtype=torch.float64).round().long()
    spans = edges.diff()
    return edges[:-1], spans, spans - 1


def at_rows(calls: Sequence[Call], sequences: Tensor, rows: Tensor) -> Call:
    """Return a copy of calls that are alike, one after the other, for some queries; rows (S, R)."""
    call, keys = calls[0], calls[0].key.shape[2]
    whole = len(sequences) == len(call.query)

    def cut(term: Tensor | None) -> Tensor | None:  # rows may be shared, keys too many
        if term is None:
            return None
        if len(term) > 1 and not whole:
            term = term[sequences]
        term = term[..., :keys]
        if term.shape[-2] > 1:
            term = term.expand(len(rows), *term.shape[1:])
            term = term[torch.arange(len(rows), device=rows.device)[:, None], :, rows]
            term = term.transpose(1, 2)
        return term if len(term) == 1 else term.repeat(len(calls), 1, 1, 1)

    mask = cut(call.mask)
    if mask is None and call.causal:
        mask = (torch.arange(keys, device=rows.device) <= rows[..., None])[:, None]
        mask = mask.repeat(len(calls), 1, 1, 1)
    places = sequences[:, None]
    outputs = [call.output[places, rows] for call in calls if call.output is not None]
    return replace(
        call,
        query=torch.cat([call.query[places, :, rows] for call in calls]).transpose(1, 2).float(),
        key=_side_by_side([call.key for call in calls], sequences, whole),
        value=_side_by_side([call.value for call in calls], sequences, whole),
        mask=mask,
        bias=cut(call.bias),
        causal=False,
        weights=None,
        output=torch.cat(outputs) if outputs else None,
    )


def _side_by_side(several: Sequence[Tensor], sequences: Tensor, whole: bool) -> Tensor:
    """Return the vectors (S, G, M, D) of some sequences in float32, each head's side by side.

    A product copies the vectors of several sequences: from (B, M, G, D), as models have them,
    slowly and each time, and not at all from (B, G, M, D). Several calls follow each other.
    """
    if len(several) > 1:
        shared = len(several[0]) == 1  # one set of keys may serve the whole batch
        count = len(sequences)
        joined = several[0].new_empty(
            (len(several) * count, *several[0].shape[1:]), dtype=torch.float32
        )
        for part, vectors in zip(torch.split(joined, count), several, strict=True):
            part.copy_(vectors if whole or shared else vectors[sequences])
        return joined
    (vectors,) = several
    if len(vectors) == 1:
        return vectors.float()
    vectors = vectors if whole else vectors[sequences]
    if vectors.dtype == torch.float32:
        return vectors.contiguous()
    return vectors.to(torch.float32, memory_format=torch.contiguous_format)


def _in_blocks(
    calls: Sequence[Call], halves: Sequence[Tensor], sequences: Tensor, rows: Tensor, told: bool
) -> Sequence[Tensor]:
    """Return what `_shown` returns of all rows, from so many at once as fit into memory."""
    count, width = rows.shape
    one = max(1, calls[0].query.shape[1] * calls[0].key.shape[2])  # weights of a row of all heads
    tall = max(1, LARGEST // (one * width))  # sequences at once
    wide = max(1, min(width, LARGEST // one))  # rows at once

    def block(here: slice, there: slice) -> tuple[Tensor, ...]:
        drawn = sequences[here]
        rounded = _side_by_side(halves, drawn, len(drawn) == len(calls[0].query))
        return _shown(at_rows(calls, drawn, rows[here, there]), rounded, told)

    if len(calls) > 1 or (count <= tall and width <= wide):
        return block(slice(None), slice(None))
    blocks = []
    for start in range(0, count, tall):
        here = slice(start, start + tall)
        parts = [block(here, slice(row, row + wide)) for row in range(0, width, wide)]
        blocks.append([torch.cat(part, 1) for part in zip(*parts, strict=True)])
    return [torch.cat(block) for block in zip(*blocks, strict=True)]


def _shown(call: Call, half: Tensor, told: bool) -> tuple[Tensor, ...]:
    """Return what the rows of a call show: the fields of a Sample, each (S, R, …).

    half  its keys, rounded to fp16
    """
    rounded_query = call.query.half().float()
    products = grouped_product(call.query, call.key.mT), grouped_product(rounded_query, half.mT)
    weights, rounded = call.softmax(call.logits_of(torch.stack(products)))  # (S, H, R, M)
    rounding = (weights - rounded).abs_().amax((1, 3))
    error, size = torch.zeros_like(rounding), torch.ones_like(rounding)
    if call.output is not None:
        moved = grouped_product(weights, call.value)  # (S, H, R, E)
        given = call.output.transpose(1, 2).float()
        error, size = (moved - given).abs_().amax((1, 3)), given.abs().amax((1, 3))
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
    """Return the errors of a sample; `queries` and `keys` as in `spot_checks`."""
    return spot_checks([sample], queries, keys)[0]


def spot_checks(
    samples: Sequence[Sample], queries: Tensor | None, keys: Tensor | None
) -> list[Errors]:
    """Return the errors of each of some samples, all of the same shape, of one batch.

    queries, keys  (B, N) and (B, M) bool: which places are not padding; None: all
    """
    together, count = _joined(samples), len(samples)
    counts, of = torch.ones_like(together.rows, dtype=torch.bool), together.batch * together.queries
    if queries is not None and queries.shape == (together.batch, together.queries):
        counts, of = real_rows(together, queries), int(queries.sum())
    error, size = (part.nan_to_num(torch.inf) for part in (together.error, together.size))
    size = size.masked_fill(size.isinf() | ~counts, 0.0).amax(1, keepdim=True).clamp_min(1e-6)
    output = error / size
    if keys is not None and keys.shape == (together.batch, together.looked.shape[2]):
        pads = ~keys[together.sequences.cpu()].to(together.looked.device)
        output = torch.maximum(output, (together.looked.float() * pads[:, None]).sum(-1))
    both = torch.stack([together.rounding.nan_to_num(torch.inf), output])
    off = both.masked_fill(~counts, 0.0).view(2, count, -1).amax(2)
    compared = counts.view(count, -1).sum(1)
    largest = zip(*off.tolist(), compared.tolist(), strict=True)
    return [Errors(rounding, output, rows, of) for rounding, output, rows in largest]


def _joined(samples: Sequence[Sample]) -> Sample:
    """Return several samples of one batch as one, with so many times as many sequences."""
    if len(samples) == 1:
        return samples[0]
    names = ("sequences", "rows", "rounding", "error", "size", "looked")
    parts = [torch.cat([getattr(sample, name) for sample in samples]) for name in names]
    return Sample(samples[0].batch, samples[0].queries, *parts)


def real_rows(sample: Sample, queries: Tensor) -> Tensor:
    """Return which rows of a sample are not padding, (S, R); queries (B, N) bool."""
    return queries[sample.sequences.cpu()].to(sample.rows.device).gather(1, sample.rows)
