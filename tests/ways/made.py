"""Weights, tokens and exports of other tools, made by hand with NumPy alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
TOKENS = ["<s>", "the", "cat", "saw", "the", "cat"]


def rows(heads: int, n: int, m: int, seed: int = 0, causal: bool = False) -> Floats:
    """Random weights (H, N, M) whose rows sum to one."""
    drawn = np.random.default_rng(seed).dirichlet(np.full(m, 0.5), (heads, n))
    if causal:
        drawn = np.tril(drawn)
        drawn /= drawn.sum(-1, keepdims=True)
    return drawn.astype(np.float32)


def sequence(
    number: int, tokens: list[str], weights: dict[tuple[int, int], float]
) -> dict[str, Any]:
    """A sequence as HeadVis' data_pipeline.py describes it."""
    n = len(tokens)
    return {
        "sequence_id": number, "interval": 10, "tokens": tokens,
        "attention_indices": [q * n + k for q, k in weights],
        "attention_values": list(weights.values()), "seq_len": n,
        "max_activation": max(v for (q, k), v in weights.items() if q and k),
    }  # fmt: skip


def write_export(folder: Path, heads: dict[tuple[int, int], list[dict[str, Any]]]) -> Path:
    """A small export, written by hand to the form of HeadVis' own docstrings."""
    (folder / "heads").mkdir(parents=True)
    config = {
        "model_name": "gpt2", "heads": [list(pair) for pair in heads], "n_layers": 12,
        "n_heads": 12, "n_intervals": 10, "metrics": ["induction_score", "logit_std"],
        "metric_descriptions": {"induction_score": "how much it copies"},
        "head_data_pattern": "L{layer}H{head}.json", "has_umap": False, "umap_heads": [],
        "custom_plots": [{"key": "qk_distance_histogram", "label": "Q-K distance"}],
    }  # fmt: skip
    scatter = [
        {"layer": layer, "head": head, "induction_score": 0.25 * number, "logit_std": 1.5}
        for number, (layer, head) in enumerate(heads)
    ]
    put(folder / "config.json", config)
    put(folder / "scatter_data.json", scatter)
    for (layer, head), sequences in heads.items():
        payload = {
            "sequences": sequences, "histogram": {}, "statistics": {},
            "qk_distance_histogram": {"bin_edges": [0, 1, 2, 4], "bin_values": [1, 2, 1]},
            "top_query_tokens": [{"token": "the", "weight": 0.34}], "top_key_tokens": [],
        }  # fmt: skip
        put(folder / "heads" / f"L{layer}H{head}.json", payload)
    return folder


def put(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
