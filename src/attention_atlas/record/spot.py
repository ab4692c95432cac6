"""Does the run itself, batch by batch, still give what we recompute?

The receipt is made on a few inputs; the run has masks and paddings of its own. So in every batch a
few rows of every layer are recomputed, of its first and its last input (the most and the least
padded, for a batch is sorted by length), and the output they move is compared with the output the
model's own attention gave. The same rows tell whether fp16 is fine enough for the stored vectors.
"""

import torch
from torch import Tensor

from attention_atlas.record.call import Call, spread

ROWS = 8


def spot_check(call: Call, queries: Tensor | None, keys: Tensor | None) -> tuple[float, float]:
    """Largest error of sampled rows: of weights by fp16 rounding, and of the output (relative).

    What a row gives to padding is an error too, for an atlas has no place to show it.
    queries, keys  (B, N) and (B, M) bool, which places are not padding; None: all.
    """
    n, batch = call.query.shape[2], len(call.query)
    if batch > 2:
        ends = slice(0, None, batch - 1)
        queries, keys = (_only(real, ends, batch) for real in (queries, keys))
        call = call.only(ends)
    rows = torch.linspace(0, n - 1, min(ROWS, n), device=call.query.device).round().long()
    weights = call.softmax(call.logits(rows))  # (B, H, rows, M)
    rounded = call.softmax(call.logits(rows, half=True))
    counts = (
        torch.ones(len(call.query), len(rows), dtype=torch.bool, device=rows.device)
        if queries is None or queries.shape != (len(call.query), n)
        else queries.to(rows.device)[:, rows]
    )
    by_row = (weights - rounded).abs().amax((1, 3))  # (B, rows)
    rounding = _largest(by_row, counts)
    lost = 0.0
    if keys is not None and keys.shape == (len(call.query), weights.shape[-1]):
        pads = ~keys.to(rows.device)[:, None, None, :]
        lost = _largest((weights * pads).sum(-1).amax(1), counts)
    if call.output is None:
        return rounding, lost
    moved = weights @ spread(call.value, weights.shape[1]).float()  # (B, H, rows, E)
    given = call.output[:, rows].transpose(1, 2).float()
    size = given.abs().amax((1, 2, 3)).clamp_min(1e-6)[:, None]
    return rounding, max(lost, _largest((moved - given).abs().amax((1, 3)) / size, counts))


def _only(real: Tensor | None, inputs: slice, batch: int) -> Tensor | None:
    return real[inputs] if real is not None and len(real) == batch else real


def _largest(by_row: Tensor, counts: Tensor) -> float:
    """NaN and overflow count as the largest error there is."""
    chosen = by_row.nan_to_num(torch.inf)[counts]
    return float(chosen.max()) if chosen.numel() else 0.0
