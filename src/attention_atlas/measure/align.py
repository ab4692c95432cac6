"""How are the tokens of two tokenizers compared on one text?

By characters: the text is cut at every place where either tokenizer cuts, and a token's weight is
spread over its cuts by their length. Tokens that stand for no characters (special ones) are left
out, and rows are made to sum to one again over what is left.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.measure.arrays import Floats

Places = npt.NDArray[np.intp]


def cuts(*frames: pd.DataFrame) -> list[tuple[int, int]]:
    """Cut a text wherever a token table does; returns the pieces that all tables cover."""
    edges: set[int] = set()
    covered: set[int] | None = None
    for frame in frames:
        spans = [(int(s), int(e)) for s, e in zip(frame["start"], frame["end"], strict=True)]
        spans = [(start, end) for start, end in spans if 0 <= start < end]
        edges |= {edge for span in spans for edge in span}
        characters = {place for start, end in spans for place in range(start, end)}
        covered = characters if covered is None else covered & characters
    ordered = sorted(edges)
    return [(start, end) for start, end in pairwise(ordered) if covered and start in covered]


def onto(pieces: list[tuple[int, int]], frame: pd.DataFrame) -> Floats:
    """Compute each piece's share of each token; returns (tokens, pieces), rows sum to 1 or 0."""
    starts, ends = (frame[name].to_numpy(np.int64) for name in ("start", "end"))
    low, high = (np.array([piece[side] for piece in pieces], np.int64) for side in (0, 1))
    inside = np.minimum(ends[:, None], high) - np.maximum(starts[:, None], low)
    share = np.where(starts[:, None] >= 0, np.maximum(inside, 0), 0).astype(np.float64)
    return np.asarray(share / np.maximum(share.sum(1, keepdims=True), 1))


def looking(share: Floats, pieces: Places) -> Places:
    """Find the tokens that pieces are parts of, from shares (tokens, all pieces); returns (R,)."""
    return np.flatnonzero((share[:, pieces] > 0).any(1))


def aligned(weights: Floats, share: Floats, pieces: Places) -> Floats:
    """Turn weights of tokens into weights of pieces; returns (H, pieces, all pieces).

    `weights` (H, R, M) are the rows of the tokens that the pieces are parts of (`looking`); a piece
    looks as its token does.
    """
    rows = (share[looking(share, pieces)][:, pieces] > 0).astype(np.float64)  # (R, pieces)
    rows = rows / np.maximum(rows.sum(0, keepdims=True), 1)
    columns = np.einsum("hrm,mq->hrq", weights, share, optimize=True)
    moved = np.einsum("rp,hrq->hpq", rows, columns, optimize=True)
    return np.asarray(moved / np.maximum(moved.sum(2, keepdims=True), 1e-9))
