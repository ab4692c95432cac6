"""Which attention calls does a model make while it generates, and which tokens does it read?"""

from typing import Any

from torch import Tensor

from attention_atlas.models.encode import Encoded, Tokens
from attention_atlas.models.generation import write_greedily
from attention_atlas.models.limits import longest, longest_target
from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import bare_tokens
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.ways import Watch


def watch_writing(
    watch: Watch, loaded: Loaded, tensors: dict[str, Tensor], item: Encoded, new: int
) -> tuple[list[Call], dict[str, Tokens]]:
    """Let the model write `new` tokens after one input; return the calls and all tokens."""
    written: list[list[int]] = []

    def write(**given: Tensor) -> None:
        written.append(write_greedily(loaded.model, given, new))

    side = written_side(item.streams)
    _refuse_too_long(loaded, side, prompt_length(item), new)
    given = {k: v for k, v in tensors.items() if side == "text" or not k.startswith("decoder_")}
    calls = watch(given, write)
    ids = written[0]
    before = item.streams[side]
    if ids[: len(before)] == before.id:
        tokens = before + bare_tokens(ids[len(before) :], loaded.tokenizer)
    else:
        tokens = bare_tokens(ids, loaded.tokenizer)
    return calls, {**item.streams, side: tokens}


def _refuse_too_long(loaded: Loaded, side: str, read: int, new: int) -> None:
    """Refuse to write beyond the positions that a model has; the last token is never read."""
    most = longest_target(loaded) if side == "decoder" else longest(loaded)
    if most is not None and read + new - 1 > most:
        raise InputError(
            f"asked to generate {new} tokens after {read}, and {loaded.name} takes {most}; "
            f"generate at most {max(0, most - read + 1)}"
        )


def prompt_length(item: Encoded) -> int:
    """Return how many tokens the model reads before it writes; a decoder reads its start token."""
    side = written_side(item.streams)
    return 1 if side == "decoder" else len(item.streams[side])


def written_side(streams: dict[str, Any]) -> str:
    """Return the name of the stream that the model writes into."""
    return "decoder" if "decoder" in streams else "text"
