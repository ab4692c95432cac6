"""What does a model answer, and how much does it prefer one answer to another?

The answer is one token: the one after the text, the one at the mask, or the label of a classifier.

difference   logit of the answer less logit of the wrong answer
probability  of the answer
loss         −log probability of the answer, in nats
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import Encoded
from attention_atlas.names.errors import InputError
from attention_atlas.names.token_text import can_be_written

Reading = Callable[[Tensor, int, int | None], Tensor]  # (W, V), answer, wrong → (W,)


def _difference(logits: Tensor, answer: int, wrong: int | None) -> Tensor:
    if wrong is None:
        raise InputError(
            "a difference of logits needs two answers and was given one; give the wrong answer "
            'too, or metric="probability"'
        )
    return logits[:, answer] - logits[:, wrong]


METRICS: dict[str, Reading] = {
    "difference": _difference,
    "probability": lambda logits, answer, _: logits.softmax(-1)[:, answer],
    "loss": lambda logits, answer, _: -logits.log_softmax(-1)[:, answer],
}


@dataclass(frozen=True)
class Question:
    """Where a model's answer is read, and which answers are compared."""

    place: int | None  # of the prediction; None: the model gives one label for the input
    answer: int
    wrong: int | None
    metric: str

    def read(self, logits: Tensor) -> list[float]:
        """Return the metric of each world, of logits (W, N, V) or (W, labels)."""
        rows = logits if self.place is None else logits[:, self.place]
        values: list[float] = METRICS[self.metric](rows.double(), self.answer, self.wrong).tolist()
        return values


def check_metric(name: str) -> None:
    """Refuse a metric that does not exist."""
    if name not in METRICS:
        raise InputError(f"no metric is called {name!r}; give one of {', '.join(METRICS)}")


def question(
    loaded: Loaded, item: Encoded, answers: tuple[Any, Any], metric: str, logits: Tensor
) -> Question:
    """Return what is asked of a model on one input; answers are words or token ids.

    logits  of a plain pass, whose shape says what the model predicts
    """
    check_metric(metric)
    place = _place(loaded, item, logits)
    ids = [
        None if given is None else _answer_id(loaded, given, place is None, logits.shape[-1])
        for given in answers
    ]
    if ids[0] is None:
        raise InputError("no answer was given; give the word that the model should predict")
    return Question(place, ids[0], ids[1], metric)


def _place(loaded: Loaded, item: Encoded, logits: Tensor) -> int | None:
    if logits.dim() == 2:
        return None
    mask = getattr(loaded.tokenizer, "mask_token_id", None)
    ids = item.tensors.get("decoder_input_ids", item.tensors.get("input_ids"))
    if mask is None or ids is None:
        return logits.shape[1] - 1
    masked = (ids[0] == mask).nonzero()[:, 0].tolist()
    if len(masked) > 1:
        raise InputError(f"the input has {len(masked)} masks and an answer is read at one of them")
    if not masked and not loaded.model.can_generate():
        raise InputError(
            f"{loaded.name} fills in masks and the input has none; write "
            f"{loaded.tokenizer.mask_token} where the answer belongs"
        )
    return masked[0] if masked else logits.shape[1] - 1


def _answer_id(loaded: Loaded, given: Any, label: bool, count: int) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < count:
            raise InputError(f"answer {given} was given and {loaded.name} has 0 to {count - 1}")
        return given
    if label:
        names: dict[str, int] = getattr(loaded.model.config, "label2id", None) or {}
        if given not in names:
            raise InputError(
                f"no label of {loaded.name} is called {given!r}; give one of {', '.join(names)}"
            )
        return int(names[given])
    return token_id(loaded, str(given))


def token_id(loaded: Loaded, word: str) -> int:
    """Return the id of an answer that is one token; any other is an InputError."""
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        raise InputError(
            f"{loaded.name} has no tokenizer, so the answer {word!r} is no token of it; give the "
            "id of the token"
        )
    if not can_be_written(word):
        raise InputError(f"the answer {word!r} has half of a character; give a word")
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    unknown = getattr(tokenizer, "unk_token_id", None)
    if len(ids) != 1 or (ids[0] == unknown and word != tokenizer.unk_token):
        pieces = " + ".join(repr(tokenizer.decode([piece])) for piece in ids) or "nothing"
        raise InputError(
            f"the answer {word!r} is not one token of {loaded.name} but {pieces}; give a word that "
            "is one token, with its leading space if it has one"
        )
    return int(ids[0])
