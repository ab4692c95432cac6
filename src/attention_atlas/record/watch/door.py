"""How do we see every attention of a model without touching its code?

transformers looks its attention function up by name. We register ours, and a mask function beside
it (without one the mask is silently None), run the model under that name, and note what comes by.
Models that test for the name "eager" are given our function under that very name instead.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.location import Location

# Arguments that change nothing about the weights beyond what mask, scale, soft cap, bias and sink
# already say: windows and causality are in the mask, the rest steers caches and kernels.
_HARMLESS = frozenset(
    [
        "is_causal",
        "sliding_window",
        "position_ids",
        "cache_position",
        "use_cache",
        "output_attentions",
        "cache",
        "output_hidden_states",
        "return_dict",
        "past_key_values",
        "past_key_value",
        "layer_idx",
        "deterministic",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "cu_seqlens",
        "max_seqlen",
        "output_router_logits",
        "position_embeddings",
        "attention_mask",
        "head_mask",
    ]
)
_KNOWN = _HARMLESS | {"softcap", "position_bias", "s_aux"}
_EAGER, _FAST = "atlas_eager", "atlas_fast"

_active = threading.local()


class Recorder:
    """Records the attention calls of a model while open.

    way   "named": our function under our name; "eager": under the name "eager"
    fast  run torch's fused attention as a plain run would; else the model's own eager code
    detail  keep the model's own weights as well
    light   what is to stay of each call, when not all of it
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        way: str = "named",
        fast: bool = False,
        detail: bool = False,
        light: Callable[[Call], Call] | None = None,
    ):
        self.model, self.way, self.fast, self.detail = model, way, fast, detail
        self.light = light
        self.calls: list[Call] = []
        self._location = Location(model)
        self._context: Any = None

    def __enter__(self) -> "Recorder":
        self._context = self._open()
        self._context.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._context.__exit__(*problem)

    @contextmanager
    def _open(self) -> Iterator[None]:
        outer = getattr(_active, "recorder", None)
        name = "eager" if self.way == "eager" else _FAST if self.fast else _EAGER
        with self._location, registered(name), implementation(self.model, name):
            _active.recorder = self
            try:
                yield
            finally:
                _active.recorder = outer

    def take(self) -> list[Call]:
        """The calls so far; the recorder starts anew."""
        calls, self.calls = self.calls, []
        self._location.step = -1
        return calls

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        run = ALL_ATTENTION_FUNCTIONS["sdpa"] if self.fast else own_eager(module)
        output, weights = run(module, query, key, value, mask, **options)
        scaling = options.get("scaling")
        bias = options.get("position_bias")
        sink = options.get("s_aux", getattr(module, "sinks", None))
        call = Call(
            query=query.detach(),
            key=key.detach(),
            value=value.detach(),
            scale=float(query.shape[-1] ** -0.5 if scaling is None else scaling),
            mask=None if mask is None else mask.detach(),
            causal=self.fast and mask is None and _is_causal(module, query, options),
            bias=None if bias is None else bias.detach(),
            softcap=options.get("softcap"),
            sink=None if sink is None else sink.detach().reshape(-1),
            weights=weights.detach() if self.detail and weights is not None else None,
            output=output.detach(),
            unknown=tuple(
                sorted(
                    name
                    for name, value in options.items()
                    if value is not None and name not in _KNOWN | {"scaling", "dropout"}
                )
            ),
            **self._location.describe(module),
        )
        self.calls.append(call if self.light is None else self.light(call))
        return output, weights


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
    attention_mask: Tensor | None = None, **options: Any,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    recorder: Recorder | None = getattr(_active, "recorder", None)
    if recorder is None:  # another thread runs a model while we record here
        return own_eager(module)(module, query, key, value, attention_mask, **options)
    return recorder.attend(module, query, key, value, attention_mask, options)


def own_eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The eager attention function of the file that the module's class was written in."""
    for cls in type(module).__mro__:
        found = getattr(sys.modules.get(cls.__module__), "eager_attention_forward", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise LookupError(f"{type(module).__name__} has no eager attention function of its own")


def _is_causal(module: nn.Module, query: Tensor, options: dict[str, Any]) -> bool:
    """What torch's fused attention makes of a missing mask, as transformers calls it."""
    said = options.get("is_causal")
    said = getattr(module, "is_causal", True) if said is None else said
    return bool(said) and query.shape[2] > 1


@contextmanager
def registered(name: str) -> Iterator[None]:
    """Our function and its mask function, known to transformers under `name` for a while."""
    functions, masks = AttentionInterface._global_mapping, AttentionMaskInterface._global_mapping
    before = functions.get(name), masks.get(name)
    AttentionInterface.register(name, _attend)
    kind = "sdpa" if name == _FAST else "eager"
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[kind])
    try:
        yield
    finally:
        for mapping, old in zip((functions, masks), before, strict=True):
            if old is None:
                mapping.pop(name, None)
            else:
                mapping[name] = old


@contextmanager
def implementation(model: PreTrainedModel, name: str) -> Iterator[None]:
    """The model and all its parts set to an attention implementation, and put back after."""
    before = [(config, config._attn_implementation_internal) for config in _configs(model)]
    level = transformers_log_level()
    try:
        with level:
            model.set_attn_implementation(name)
        yield
    finally:
        for config, old in before:
            config._attn_implementation_internal = old


def _configs(model: PreTrainedModel) -> list[Any]:
    found: dict[int, Any] = {}

    def add(config: Any) -> None:
        if config is None or id(config) in found:
            return
        found[id(config)] = config
        for key in getattr(config, "sub_configs", {}):
            add(getattr(config, key, None))

    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            add(module.config)
    return list(found.values())


@contextmanager
def transformers_log_level() -> Iterator[None]:
    """Quiet where we ask models for things we know some cannot do."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def runs_fused(model: PreTrainedModel) -> bool:
    """Whether a plain run of this model, and of each of its parts, uses torch's fused attention."""
    return all(config._attn_implementation_internal == "sdpa" for config in _configs(model))
