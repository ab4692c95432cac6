"""Where is the attention when an old BertViz notebook gives an empty tuple?

BertViz's README takes `outputs[-1]`. In transformers 5 the last output is an empty
`cross_attentions`, so that is `()`. Then we search the caller's variables: for the only model
output with attention for these tokens, or else for the only model and the ids that it read, and run
it again. Any other case is an error.
"""

from collections.abc import Mapping
from typing import Any

_READ = ("input_ids", "token_type_ids", "attention_mask")


def find_attention(variables: Mapping[str, Any], length: int) -> tuple[Any, str] | None:
    """Search the variables of the caller; return (attention, where it was found) or None."""
    held = {
        name: value.attentions
        for name, value in variables.items()
        if not name.startswith("_") and _fits(getattr(value, "attentions", None), length)
    }
    if len(held) == 1:
        name, attention = held.popitem()
        return attention, f"{name}.attentions"
    models = {
        name: value
        for name, value in variables.items()
        if not name.startswith("_") and _is_model(value)
    }
    read = {name: variables[name] for name in _READ if _shape(variables.get(name)) == (1, length)}
    if held or len(models) != 1 or "input_ids" not in read:
        return None
    name, model = models.popitem()
    attention = getattr(model(**read, output_attentions=True), "attentions", None)
    return (attention, f"a second run of {name}") if _fits(attention, length) else None


def _fits(attention: Any, length: int) -> bool:
    if not isinstance(attention, tuple | list) or not attention:
        return False
    shape = _shape(attention[0])
    return len(shape) == 4 and shape[0] == 1 and shape[2:] == (length, length)


def _is_model(value: Any) -> bool:
    return hasattr(value, "config") and hasattr(value, "forward") and callable(value)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))
