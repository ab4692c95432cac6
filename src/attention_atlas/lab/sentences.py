"""What does an edit do, in one sentence, and which heads does it touch?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attention_atlas.edits.edit import ALL
from attention_atlas.edits.hooks import Bound
from attention_atlas.names.head import Head

_MOST = 4  # names in one sentence
_PATTERNS = {
    "even": "even over the tokens that are seen",
    "previous": "on the previous token",
    "self": "on the token itself",
}


@dataclass(frozen=True)
class Described:
    """What an edit does, and the names of the heads that it touches."""

    sentence: str
    touches: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """The tokens that look and those that are looked at, as shown."""

    queries: Sequence[str]
    keys: Sequence[str]


def describe(bound: Bound, towers: Sequence[str], sides: Sides, source: str = "") -> Described:
    """Return the sentence and the heads of a bound edit.

    towers  of the model; a head's name has its tower only where there are several
    sides   the tokens of its first layer; a position beyond them is written as its number
    source  words for the input that a patch takes from
    """
    named = _heads(bound, towers, shared=False)
    touched = _heads(bound, towers, shared=True)
    words = _Words(bound.edit, _said(bound, named), len(named) > 1, sides, source)
    sentence = _SAY[bound.edit.kind](words)
    if bound.edit.positions is not None:
        tokens = sides.keys if _side(bound) in ("key", "value") else sides.queries
        sentence += f", at {_places(bound.edit.positions, tokens)}"
    others = [head for head in touched if head not in named]
    if others:
        sentence += f"; {_list(others)} read{'s' * (len(others) == 1)} the same"
    return Described(sentence, tuple(touched))


@dataclass(frozen=True)
class _Words:
    edit: Any
    heads: str
    several: bool
    sides: Sides
    source: str

    @property
    def their(self) -> str:
        return "their" if self.several else "its"


def _ablate(words: _Words) -> str:
    count = len(words.edit.from_ or ())
    inputs = f"{count} other input{'s' * (count != 1)}"
    what = {
        "zero": "zero",
        "mean": f"{words.their} mean over {inputs}",
        "resample": f"what was moved at the same position of one of {inputs}",
    }
    return f"what {words.heads} {_verb(words, 'move')} is {what[words.edit.by]}"


def _scale(words: _Words) -> str:
    return f"what {words.heads} {_verb(words, 'move')} is multiplied by {words.edit.by:g}"


def _mask(words: _Words) -> str:
    edit, hidden = words.edit, []
    if edit.tokens is not None:
        hidden.append(f"{words.heads} cannot see {_places(edit.tokens, words.sides.keys)}")
    if edit.edges is not None:
        sides = words.sides
        lines = [
            f"{_token(query, sides.queries)} cannot see {_token(key, sides.keys)}"
            for query, key in edit.edges
        ]
        hidden.append(f"in {words.heads} {_list(lines) or 'nothing is hidden'}")
    return ", and ".join(hidden)


def _pattern(words: _Words) -> str:
    edit = words.edit
    if edit.pattern == "window":
        what = f"even over the first {edit.sink} and the last {edit.recent} tokens"
    else:
        what = _PATTERNS.get(
            edit.pattern if isinstance(edit.pattern, str) else "", "a given matrix"
        )
    return f"the weights of {words.heads} are {what}"


def _neuron(words: _Words) -> str:
    edit = words.edit
    neurons = f"neuron{'s' * (len(edit.index) > 1)} {_list(list(map(str, edit.index)))}"
    what = f"set to {edit.value:g}" if edit.scale is None else f"multiplied by {edit.scale:g}"
    return f"{neurons} of the {edit.side} of {words.heads} {_be(edit.index)} {what}"


def _patch(words: _Words) -> str:
    return f"the {words.edit.what} of {words.heads} is that of {words.source or 'another input'}"


_SAY: dict[str, Callable[[_Words], str]] = {
    "ablate": _ablate,
    "scale": _scale,
    "mask": _mask,
    "pattern": _pattern,
    "neuron": _neuron,
    "patch": _patch,
}


def _places(positions: Sequence[int], tokens: Sequence[str]) -> str:
    return _list([_token(position, tokens) for position in positions]) or "no token"


def _token(position: int, tokens: Sequence[str]) -> str:
    return f"token {position}" + (f" “{tokens[position]}”" if position < len(tokens) else "")


def _side(bound: Bound) -> str:
    """Return the query, key or value that an edit changes; other words mean none of these."""
    return str(getattr(bound.edit, "side", getattr(bound.edit, "what", "")))


def _verb(words: _Words, verb: str) -> str:
    return verb if words.several else f"{verb}s"


def _be(several: Sequence[object]) -> str:
    return "are" if len(several) > 1 else "is"


def _heads(bound: Bound, towers: Sequence[str], shared: bool) -> list[str]:
    """Return the names of the heads of an edit; `shared`: those too that share a changed key."""
    spreads = shared and _side(bound) in ("key", "value")
    names = []
    for layer, heads in bound.heads.items():
        touched = {other for head in heads for other in layer.sharing(head)} if spreads else heads
        tower = layer.tower if len(towers) > 1 else ""
        names += [str(Head(tower, layer.number, head)) for head in sorted(touched)]
    return names


def _said(bound: Bound, names: Sequence[str]) -> str:
    """Return words for the heads of an edit; a whole layer is not written head by head."""
    if ALL in bound.edit.heads:
        return "all heads"
    (layer, heads), *more = bound.heads.items()
    if not more and len(heads) == layer.heads > 1:
        return f"all heads of {names[0].rpartition('H')[0]}"
    return _list(names)


def _list(names: Sequence[str]) -> str:
    """Return names as a list; a long one is cut and says how many there are."""
    if len(names) > _MOST:
        return f"{', '.join(names[: _MOST - 1])} … ({len(names)} in all)"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
