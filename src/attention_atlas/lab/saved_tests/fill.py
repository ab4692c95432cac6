"""What are the inputs, answers and edits of one case, in the model at hand?

A blank (___) is where the answer belongs. A model that fills in masks gets its mask there; any
other model reads the text up to it.
"""

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from attention_atlas.edits.edit import Edit
from attention_atlas.edits.table import from_json
from attention_atlas.lab.answers import token_id
from attention_atlas.lab.saved_tests.definition import TestCase
from attention_atlas.lab.worlds import Scene
from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import Tokens
from attention_atlas.names.errors import InputError

BLANK = "___"
LAST = "last"  # the name of the place where the answer is predicted
_NAME = re.compile(r"\{(\w+)\}")


def fill(loaded: Loaded, text: Any) -> Any:
    """Return an input as the model reads it: masked or cut at its blank."""
    if not isinstance(text, str) or BLANK not in text:
        return text
    mask = getattr(loaded.tokenizer, "mask_token", None)
    if mask and not loaded.model.can_generate():
        return text.replace(BLANK, mask)
    return text.partition(BLANK)[0].rstrip()


def answers(loaded: Loaded, case: TestCase) -> tuple[Any, Any]:
    """Return the answers of a case; at a blank, a word as it stands after a space."""
    if not isinstance(case.input, str) or BLANK not in case.input:
        return case.answer, case.wrong
    right, wrong = (_after_a_space(loaded, word) for word in (case.answer, case.wrong))
    return right, wrong


def _after_a_space(loaded: Loaded, word: Any) -> Any:
    if not isinstance(word, str):
        return word
    try:
        return token_id(loaded, f" {word}")
    except InputError:
        return token_id(loaded, word)


def case_edits(
    raw: tuple[Mapping[str, Any], ...], case: TestCase, scene: Scene, place: int | None
) -> list[Edit]:
    """Return the edits of a test for one case: its names are replaced by positions and inputs."""
    names: dict[str, Any] = {
        name: fill(scene.loaded, text) for name, text in case.texts.items()
    } | {name: word_positions(scene, word) for name, word in case.words.items()}
    if place is not None:
        names[LAST] = [place]
    return [from_json({key: _named(key, value, names) for key, value in edit.items()})
            for edit in raw]  # fmt: skip


def _named(key: str, value: Any, names: Mapping[str, Any]) -> Any:
    if key == "edges" and isinstance(value, list):
        ends = [[_listed(_named("", end, names)) for end in edge] for edge in value]
        return [list(edge) for both in ends for edge in product(*both)]
    if isinstance(value, list):
        return [_named("", inner, names) for inner in value]
    match = _NAME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    if match[1] not in names:
        raise InputError(
            f"an edit names {value} and the case has {', '.join(names) or 'no names'}; add it to "
            "its words or texts"
        )
    return names[match[1]]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def word_positions(scene: Scene, word: str) -> list[int]:
    """Return the tokens of a word in a scene's text, wherever it stands."""
    text = scene.given if isinstance(scene.given, str) else ""
    spans = [match.span() for match in re.finditer(rf"\b{re.escape(word)}\b", text)]
    positions = [
        position
        for tokens in list(scene.item.streams.values())[:1]
        for position in range(len(tokens))
        if any(_overlap(tokens, position, span) for span in spans)
    ]
    if not positions:
        raise InputError(f"the word {word!r} is not in {text!r}; check the words of the case")
    return positions


def _overlap(tokens: Tokens, position: int, span: tuple[int, int]) -> bool:
    start, end = tokens.start[position], tokens.end[position]
    return 0 <= start < span[1] and end > span[0] and end > start
