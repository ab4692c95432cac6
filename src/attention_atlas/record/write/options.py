"""What can a person choose when inputs are read and attention is captured?"""

from dataclasses import dataclass
from enum import StrEnum

from attention_atlas.names.errors import InputError
from attention_atlas.names.options import option

SHARD_BYTES = 128 * 2**20


class Kept(StrEnum):
    """What can be stored of a layer."""

    query = "query"
    key = "key"
    value = "value"
    weights = "weights"


@dataclass(frozen=True)
class Reading:
    """Which inputs are read from a file."""

    column: str | None = option(None, "The column of a table that holds the text.")
    second_column: str | None = option(None, "The column of a second text, for pairs or targets.")
    limit: int | None = option(None, "At most so many inputs, drawn by seed.", min=1)


@dataclass(frozen=True)
class Capturing:
    """How inputs are run and what is stored of them; part of the fingerprint and the manifest."""

    keep: tuple[str, ...] = option(
        ("query", "key", "value"),
        "What to store; may be repeated.",
        type=list[Kept],
    )
    batch_size: int = option(8, "Inputs that run together.", min=1)
    generate: int = option(0, "Tokens to let the model write.", min=0)
    truncate: bool = option(False, "Cut inputs that are too long.")
    seed: int = option(0, "For everything that is drawn at random.")
    shard_bytes: int = SHARD_BYTES

    def check(self) -> None:
        """Raise where nothing can come of it."""
        unknown = [what for what in self.keep if what not in list(Kept)]
        if unknown or not self.keep:
            asked = ", ".join(unknown) or "nothing"
            raise InputError(f"asked to keep {asked}; what can be kept is {', '.join(Kept)}")
        if self.batch_size < 1:
            raise InputError(
                f"a batch of {self.batch_size} holds nothing; give a batch size from 1 up"
            )
