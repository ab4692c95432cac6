"""Is the label of a head true of new texts? The saved test of a label, run by the live model."""

from typing import TYPE_CHECKING, cast

import numpy as np

from attention_atlas.measure.kinds import MIXED
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.heads import measured
from attention_atlas.page.live.model import TEXTS
from attention_atlas.page.wire.lab import LabelVerdict, Verdict

if TYPE_CHECKING:
    from attention_atlas.lab.saved_tests.run import Outcome
    from attention_atlas.models.load import Loaded


def known_kind(atlas: Grown, name: str) -> str:
    """Return the kind of a head that can be tested; a PickError says why there is none."""
    head = str(Head.parse(name))
    if not atlas.base.inputs()["kind"].isin(TEXTS).any():
        raise InputError("labels are tested on English sentences, and this atlas holds no texts")
    if head not in set(atlas.heads()["head"]):
        raise PickError(f"there is no head {head} in {atlas.path.name}")
    _, scores = measured(atlas)
    kind = scores.kinds.set_index("head")["kind"].get(head)
    if not isinstance(kind, str):
        raise PickError(f"{head} has no kind, so there is no label to test")
    if kind == MIXED:
        raise PickError(f"{head} is mixed, no kind clearly leads, so there is no label to test")
    return kind


def label_verdict(head: str, kind: str, loaded: "Loaded") -> LabelVerdict:
    """Run the test of a head's kind on the sentences written for it; return the verdict."""
    with EXCLUSIVE:  # two threads must not import transformers at once
        from attention_atlas.lab.saved_tests.label import label_test
        from attention_atlas.lab.saved_tests.run import run_test

    outcome = run_test(label_test(head, kind), loaded)
    return LabelVerdict(head, kind, cast("Verdict", outcome.verdict), _sentence(kind, outcome))


def _sentence(kind: str, outcome: "Outcome") -> str:
    lead, texts = outcome.mean, f"On {len(outcome.table)} new sentences"
    if not np.isfinite(lead.low):
        return f"{texts} there was too little attention to judge."
    if outcome.verdict == "fails":
        words = f"another kind leads {kind} by {-lead.mean:.2f} on average"
        return f"{texts} {words} (95 % interval {-lead.high:.2f} to {-lead.low:.2f})."
    words = f"the evidence for {kind} leads that for the next kind by {_signed(lead.mean)}"
    span = f"95 % interval {_signed(lead.low)} to {_signed(lead.high)}"
    open_end = ", which includes 0" if outcome.verdict == "undecided" else ""
    return f"{texts} {words} on average ({span}{open_end})."


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
