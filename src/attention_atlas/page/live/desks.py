"""Who answers for each of several subjects? One `Answers` each; they only read each other."""

from collections.abc import Sequence
from itertools import zip_longest

from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.live.workshop import Workshop
from attention_atlas.page.wire import wire
from attention_atlas.store.reader import StoredAtlas

Models = Sequence[LiveModel | None]  # one a subject; None where there is none


def make_answers(subjects: Sequence[Subject], models: Models = ()) -> list[Answers]:
    """Each subject's own; it looks at the others only where it is asked to compare."""
    made = []
    for number, (subject, model) in enumerate(zip_longest(subjects, models)):
        others = [
            _neighbour(_way(number, at), other) for at, other in enumerate(subjects) if at != number
        ]
        beside = [other for at, other in enumerate(subjects) if at != number]
        if isinstance(subject, StoredAtlas):
            grown = Grown(subject)
            shop = Workshop(grown, model)
            made.append(Answers(grown, shop, others, beside))
        else:
            made.append(Answers(subject, None, others, beside))
    return made


def _neighbour(way: str, subject: Subject) -> wire.Neighbour:
    """Reads no file: an atlas that is damaged must not keep the others from opening."""
    if isinstance(subject, StoredAtlas):
        return wire.Neighbour(way, subject.manifest.model, subject.manifest.inputs)
    return wire.Neighbour(way, "Attention", 1)


def _way(here: int, there: int) -> str:
    """From one atlas's page to another's; the first is at the root."""
    return ("" if here == 0 else "../") + ("" if there == 0 else f"{there}/") or "./"
