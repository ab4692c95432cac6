"""Which token of the clean input corresponds to which token of the corrupt one?

Inputs with as many tokens correspond token by token. Otherwise the pairs are given, or found: the
longest stretches of equal tokens, and between them stretches that are as long on both sides.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from attention_atlas.edits.edit import numbers
from attention_atlas.models.tokens import Encoded
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError

Alignment = tuple[tuple[int, int], ...]  # (clean token, corrupt token)
LEAST = 0.5  # of the shorter input's tokens must find a partner


def align(clean: Encoded, corrupt: Encoded, given: Any = None) -> Alignment | None:
    """Return pairs (clean token, corrupt token); None: the same position in both."""
    lengths = [
        {name: len(tokens) for name, tokens in item.streams.items()} for item in (clean, corrupt)
    ]
    if given is not None:
        return _checked(given, *(max(several.values(), default=0) for several in lengths))
    if lengths[0] == lengths[1]:
        return None
    counts = [" and ".join(map(str, several.values())) for several in lengths]
    said = f"the clean input has {counts[0]} tokens and the corrupt one {counts[1]}"
    if len(clean.streams) != 1 or len(corrupt.streams) != 1:
        raise InputError(f"{said}; give inputs of the same length to a model with several towers")
    (here,), (there,) = clean.streams.values(), corrupt.streams.values()
    pairs = common(here.id, there.id)
    if len(pairs) < LEAST * min(len(here), len(there)):
        raise InputError(
            f"{said}, and {len(pairs)} of them correspond; say which do: align=[(clean token, "
            "corrupt token), …]"
        )
    return pairs


def common(clean: Sequence[int], corrupt: Sequence[int]) -> Alignment:
    """Return the pairs of tokens that correspond in two sequences of ids."""
    pairs: list[tuple[int, int]] = []
    matcher = SequenceMatcher(None, clean, corrupt, autojunk=False)
    for kind, first, last, other, end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and last - first == end - other):
            pairs.extend(zip(range(first, last), range(other, end), strict=True))
    return tuple(pairs)


def _checked(given: Any, clean: int, corrupt: int) -> Alignment:
    pairs = []
    for pair in several(given, "align"):
        both = numbers(pair, "token") or ()
        if len(both) != 2 or both[0] >= clean or both[1] >= corrupt:
            raise InputError(
                f"align has the pair {pair!r} and the clean input has {clean} tokens, the corrupt "
                f"one {corrupt}; give pairs (clean token, corrupt token)"
            )
        pairs.append((both[0], both[1]))
    return tuple(pairs)
