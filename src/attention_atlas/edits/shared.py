"""Which heads does an edit of a key or value touch, where heads share them?

A key belongs to a group of heads. An edit that names only some heads of a group is refused, unless
it says `shared=True`: then it touches all of them.
"""

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.names.errors import InputError


def refuse_shared(side: str, heads: dict[ModelLayer, tuple[int, ...]], shared: bool) -> None:
    """Refuse an edit of a key or value that others share and that does not say so."""
    if shared or side not in ("key", "value"):
        return
    for layer, named in heads.items():
        for head in named:
            others = [layer.name(other) for other in layer.sharing(head) if other not in named]
            if others:
                raise InputError(
                    f"{layer.name(head)} shares its {side} with {', '.join(others)}; name them "
                    "too, or say shared=True to touch them all"
                )
