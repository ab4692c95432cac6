"""Which kinds of edit are there? A new kind is one file and one line here."""

from collections.abc import Callable, Mapping
from typing import Any

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.mask import mask
from attention_atlas.edits.neuron import neuron
from attention_atlas.edits.patch import patch
from attention_atlas.edits.pattern import pattern
from attention_atlas.edits.scale import scale
from attention_atlas.names.arguments import several, shown
from attention_atlas.names.errors import InputError

EDITS: dict[str, Callable[..., Edit]] = {
    "ablate": ablate,
    "scale": scale,
    "mask": mask,
    "pattern": pattern,
    "neuron": neuron,
    "patch": patch,
}


def from_json(raw: Mapping[str, Any]) -> Edit:
    """Return the edit that `to_json` wrote; unknown kinds and fields are an InputError."""
    fields = dict(raw)
    kind = fields.pop("edit", None)
    if "from" in fields:
        fields["from_"] = fields.pop("from")
    if not isinstance(kind, str) or kind not in EDITS:
        raise InputError(f"no edit is called {str(kind)[:40]!r}; there are {', '.join(EDITS)}")
    try:
        return EDITS[kind](**fields)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"this is no edit of kind {kind}: {problem}") from problem


def read_edits(given: Any) -> tuple[Edit, ...]:
    """Return edits given as one or several, each an edit or its JSON."""
    edits = [given] if isinstance(given, Edit | Mapping) else several(given, "edits")
    for each in edits:
        if not isinstance(each, Edit | Mapping):
            raise InputError(f"an edit is {shown(each)}; give aa.ablate(…), aa.mask(…) and so on")
    return tuple(each if isinstance(each, Edit) else from_json(each) for each in edits)
