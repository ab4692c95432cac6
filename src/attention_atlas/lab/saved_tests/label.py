"""Is the kind of a head what its label says? A test on texts that the label was not made from."""

import json
from typing import Any

from attention_atlas.lab.saved_tests.definition import KIND, SavedTest, TestCase
from attention_atlas.lab.saved_tests.names import SHIPPED
from attention_atlas.measure.shapes import NAMES
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head

TEXTS = SHIPPED.parent / "texts.json"


def label_test(head: str | Head, kind: str, inputs: Any = None) -> dict[str, Any]:
    """Return the test of a head's kind, as JSON.

    It holds if on new inputs the evidence for this kind leads that for every other.

    inputs  what the model reads; unset: two dozen English sentences written for it
    """
    name = str(Head.parse(head))
    if kind not in NAMES:
        raise PickError(
            f"no test is made of the kind {kind!r}; there are tests of {', '.join(NAMES)}"
        )
    texts = json.loads(TEXTS.read_text("utf-8")) if inputs is None else list(inputs)
    if not texts:
        raise InputError(f"the label of {name} is tested on inputs, and none were given")
    return SavedTest(
        f"{name} is {kind}",
        f"Is {name} of kind {kind} on inputs that its label was not made from?",
        tuple(TestCase(text) for text in texts), (), KIND, {"at least": 0.0},
        label={"head": name, "kind": kind},
    ).to_json()  # fmt: skip
