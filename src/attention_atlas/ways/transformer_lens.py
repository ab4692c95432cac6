"""How does a TransformerLens cache become an atlas?

A cache maps names to tensors, of which these are read, for every layer L that has a pattern:

    blocks.L.attn.hook_pattern       (B, H, N, N)   weights
    blocks.L.attn.hook_q, hook_rot_q (B, N, H, D)   queries; with rotary positions those after them
    blocks.L.attn.hook_k, hook_rot_k (B, N, G, D)   keys
    blocks.L.attn.hook_v             (B, N, G, E)   values
    blocks.L.attn.hook_attn_scores   (B, H, N, N)   logits, −inf where a key is hidden

B is missing where the cache was made with remove_batch_dim. Weights recomputed from queries and
keys must be the pattern, else there is an error: the atlas would show something else.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attention_atlas.atlas import Atlas
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.read_attention import as_array
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.form import CAUSAL, FAR_BELOW, FULL, Form, compress
from attention_atlas.store.manifest import CACHE, Layer, LayerReceipt, Receipt, Rows, Tower
from attention_atlas.store.shard import Block
from attention_atlas.ways.bertviz import given_receipt
from attention_atlas.ways.given import GivenAtlas, GivenInput, GivenShard, packed, write_given

_PATTERN = re.compile(r"blocks\.(\d{1,6})\.attn\.hook_pattern")
_VECTORS = ("query", "key", "value")
_SLACK = 1e-3  # how far from one a row may sum


@dataclass(frozen=True)
class CachedLayer:
    """One layer of a cache: weights (B, H, N, N) and, where it has them, vectors (B, H, N, D)."""

    number: int
    pattern: Array
    vectors: Mapping[str, Array]
    scores: Array | None
    bound: float


def from_transformer_lens(
    cache: Any,
    tokens: Sequence[Any],
    *,
    scale: float | None = None,
    softcap: float | None = None,
    vectors: bool = True,
    path: str | Path | None = None,
    model: str = "cache",
) -> Atlas:
    """Make an atlas of a TransformerLens cache; returns the atlas.

    cache    an ActivationCache, or any mapping with its names
    tokens   texts of the tokens, as model.to_str_tokens gives them; for a batch a list of lists
    scale    what q·k is multiplied with; None: 1/√D
    softcap  the soft cap of the logits, if the model has one
    vectors  False: weights alone, also where the cache has queries and keys
    path     the folder to write; None: a temporary one, deleted with the atlas
    model    what to call it
    """
    names = _names(cache)
    layers = [_layer(cache, names, number, vectors) for number in _numbers(names)]
    texts = _texts(tokens, layers[0].pattern)
    for layer in layers:
        _check_pattern(layer, texts)
    with_vectors = all({"query", "key"} <= set(layer.vectors) for layer in layers)
    causal = all(_is_causal(layer.pattern) for layer in layers)
    about = [_about(layer, with_vectors, scale, softcap) for layer in layers]
    depth = 1 + layers[-1].number
    tower = Tower("decoder", "causal" if causal else "self", depth, tuple(about))
    made = [
        _Made(layer, one, causal, with_vectors) for layer, one in zip(layers, about, strict=True)
    ]
    receipt = _receipt(made) if with_vectors else given_receipt([tower])
    keep = [what for what in _VECTORS if all(what in layer.vectors for layer in layers)]
    given = GivenAtlas(
        towers=(tower,), inputs=[GivenInput({"text": text}) for text in texts], receipt=receipt,
        keep=tuple(keep) if with_vectors else ("weights",), model=model,
        made_from="a TransformerLens cache",
    )  # fmt: skip
    return write_given(path, given, _shards(made, texts))


class _Made:
    """A layer as it is stored: the form of each input, checked against the pattern."""

    def __init__(self, cached: CachedLayer, about: Layer, causal: bool, with_vectors: bool):
        self.cached, self.about, self.with_vectors = cached, about, with_vectors
        self.stem, self.error = f"decoder.L{cached.number}", 0.0
        self.forms = [self._form(item, causal) for item in range(len(cached.pattern))]

    def _form(self, item: int, causal: bool) -> Form:
        """Return the mask of one input; raise an InputError if no mask gives its pattern."""
        plain = CAUSAL if causal else FULL
        if not self.with_vectors:
            return plain
        pattern, errors = self.cached.pattern[item], []
        for form in self._candidates(item, plain):
            error = float(np.abs(self._recomputed(item, form) - pattern).max())
            if error <= self.cached.bound:
                self.error = max(self.error, error)
                return form
            errors.append(error)
        raise InputError(
            f"layer {self.cached.number}: weights recomputed from queries and keys differ from the "
            f"pattern by {min(errors):.1e}; give scale= or softcap= as the model has them, cache "
            "hook_rot_q and hook_rot_k if it has rotary positions, or leave the vectors out with "
            "vectors=False"
        )

    def _candidates(self, item: int, plain: Form) -> Iterable[Form]:
        """Yield the masks that may have been: the plain one, and what is hidden by the numbers."""
        yield plain
        scores = self.cached.scores
        seen = self.cached.pattern[item] > 0 if scores is None else scores[item] > -FAR_BELOW
        yield compress(np.asarray(seen, np.bool_))

    def _recomputed(self, item: int, form: Form) -> Array:
        query, key = (self.cached.vectors[what][item] for what in ("query", "key"))
        return softmax.weights(
            query, key, scale=self.about.scale, softcap=self.about.softcap, form=form
        )

    def tensors(self, item: int) -> dict[str, Array]:
        """Return what is stored of one input."""
        if not self.with_vectors:
            return {f"{self.stem}.weights": packed([self.cached.pattern[item]])}
        return {
            f"{self.stem}.{what}": np.ascontiguousarray(array[item])
            for what, array in self.cached.vectors.items()
        }


def _shards(made: Sequence[_Made], texts: Sequence[Sequence[str]]) -> Iterable[GivenShard]:
    """Yield one shard an input."""
    for item, text in enumerate(texts):
        tensors = {name: array for layer in made for name, array in layer.tensors(item).items()}
        n = len(text)
        blocks = {layer.stem: [Block(item, n, n, layer.forms[item])] for layer in made}
        yield GivenShard(range(item, item + 1), tensors, blocks)


def _receipt(made: Sequence[_Made]) -> Receipt:
    layers = [
        LayerReceipt("decoder", one.cached.number, one.error, 0.0, one.error, True) for one in made
    ]
    rows = sum(len(one.cached.pattern) * one.cached.pattern.shape[2] for one in made)
    bound = max(one.cached.bound for one in made)
    return Receipt(CACHE, "float32", bound, tuple(layers), run=Rows(rows, rows))


# What is in the cache ------------------------------------------------------------------------


def _names(cache: Any) -> set[str]:
    try:
        return {str(name) for name in cache.keys()}  # noqa: SIM118 — an ActivationCache has keys()
    except (AttributeError, TypeError):
        raise InputError(
            f"the cache is a {type(cache).__name__}; give what model.run_with_cache returns"
        ) from None


def _numbers(names: set[str]) -> list[int]:
    numbers = sorted(int(match[1]) for name in names if (match := _PATTERN.fullmatch(name)))
    if not numbers:
        raise InputError(
            "the cache has no blocks.0.attn.hook_pattern; let names_filter keep hook_pattern, and "
            "hook_q, hook_k and hook_v for vectors"
        )
    return numbers


def _layer(cache: Any, names: set[str], number: int, vectors: bool) -> CachedLayer:
    stem = f"blocks.{number}.attn."

    def array(*hooks: str) -> Array | None:
        """Return the first of some tensors that the cache has, with a batch axis."""
        name = next((stem + hook for hook in hooks if stem + hook in names), None)
        if name is None:
            return None
        read = as_array(cache[name])
        if read.ndim not in (3, 4) or not read.size:
            raise InputError(f"{name} has shape {read.shape}; it has three axes, and a batch first")
        return np.asarray(read if read.ndim == 4 else read[None], np.float32)

    pattern = array("hook_pattern")
    assert pattern is not None
    half = "16" in str(getattr(cache[f"{stem}hook_pattern"], "dtype", ""))
    found = {
        "query": array("hook_rot_q", "hook_q"), "key": array("hook_rot_k", "hook_k"),
        "value": array("hook_v"),
    }  # fmt: skip
    kept = {name: one.swapaxes(1, 2) for name, one in found.items() if one is not None and vectors}
    _check_vectors(number, pattern, kept)
    bound = 4e-3 if half else 1e-5  # as the receipt of a capture: four steps of float16
    return CachedLayer(number, pattern, kept, array("hook_attn_scores"), bound)


def _check_vectors(number: int, pattern: Array, vectors: Mapping[str, Array]) -> None:
    batch, heads, n, m = pattern.shape
    for name, array in vectors.items():
        count, groups, length, width = array.shape
        right = count == batch and length == (n if name == "query" else m) and width > 0
        right = right and groups > 0 and heads % groups == 0
        if not right or (name == "query" and groups != heads) or not np.isfinite(array).all():
            raise InputError(
                f"the {name} tensor of layer {number} has {count} × {length} tokens, {groups} "
                f"heads of width {width}, or numbers that are none; the pattern has "
                f"{batch} × {n} tokens and {heads} heads"
            )
    widths = {vectors[name].shape[3] for name in ("query", "key") if name in vectors}
    if len(widths) > 1 or len({a.shape[1] for n, a in vectors.items() if n != "query"}) > 1:
        raise InputError(f"queries, keys and values of layer {number} do not fit each other")


def _texts(tokens: Sequence[Any], pattern: Array) -> list[list[str]]:
    """Return the tokens of each input of the batch."""
    given = list(tokens)
    if not given:
        raise InputError("tokens are empty; give what model.to_str_tokens returns")
    texts = [given] if isinstance(given[0], str) else [several(one, "tokens") for one in given]
    if not all(isinstance(text, str) for one in texts for text in one):
        raise InputError("tokens are no texts; give what model.to_str_tokens returns")
    if len(texts) != len(pattern):
        raise InputError(
            f"there are tokens of {len(texts)} inputs and the cache has a batch of {len(pattern)}"
        )
    return texts


def _check_pattern(layer: CachedLayer, texts: Sequence[Sequence[str]]) -> None:
    place = f"hook_pattern of layer {layer.number}"
    batch, _, n, m = layer.pattern.shape
    if batch != len(texts) or n != m or {len(text) for text in texts} != {n}:
        raise InputError(
            f"{place} is {batch} × {n} × {m} and there are "
            f"{', '.join(str(len(text)) for text in texts[:4])} tokens; give all tokens that the "
            "model read, and inputs of one length"
        )
    pattern = layer.pattern
    sums = pattern.sum(axis=-1)
    if not (pattern >= 0).all() or not (np.abs(sums - 1) <= _SLACK).all():
        raise InputError(f"{place} has rows that do not sum to one; give it as it was cached")


def _is_causal(pattern: Array) -> bool:
    n = pattern.shape[2]
    return n > 1 and not pattern[:, :, *np.triu_indices(n, k=1)].any()


def _about(
    layer: CachedLayer, with_vectors: bool, scale: float | None, softcap: float | None
) -> Layer:  # fmt: skip
    heads = layer.pattern.shape[1]
    groups, width, value_width = heads, 0, 0
    if with_vectors:
        _, groups, _, width = layer.vectors["key"].shape
        value_width = layer.vectors["value"].shape[3] if "value" in layer.vectors else 0
    if scale is not None and not np.isfinite(scale):
        raise InputError(f"scale is {scale}; give a number, or leave it out for 1/√D")
    if softcap is not None and not (np.isfinite(softcap) and softcap > 0):
        raise InputError(f"softcap is {softcap}; give a number above zero, or leave it out")
    plain = width**-0.5 if width else 1.0
    return Layer(
        layer=layer.number, heads=heads, groups=groups, width=width, value_width=value_width,
        scale=plain if scale is None else float(scale), softcap=softcap, sink=False,
        queries="text", keys="text", module=f"blocks.{layer.number}.attn",
    )  # fmt: skip
