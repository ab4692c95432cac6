"""What can a user choose for reading inputs and capturing attention?"""

from dataclasses import dataclass
from enum import StrEnum

from attention_atlas.names.errors import InputError
from attention_atlas.names.options import MOST_SEED, check_seed, option

SHARD_BYTES = 128 * 2**20
ALL, NONE, SAMPLE = "all", "none", "sample:"
AUTO = "auto"
PROJECTIONS = (AUTO, ALL, NONE)
SCORE_ROWS, LEAST_SCORE_ROWS = 2048, 64  # of the corpus, and of each input at the least


def sample_size(vectors: str) -> int | None:
    """Return how many tokens to keep the vectors of: 0 for "none", None for "all"."""
    if vectors == ALL:
        return None
    if vectors == NONE:
        return 0
    count = vectors.removeprefix(SAMPLE).replace("_", "").replace(",", "")
    if not vectors.startswith(SAMPLE) or not count.isdecimal() or not int(count):
        raise InputError(
            f"vectors is {vectors!r}; give 'all', 'none' or a sample of so many tokens, "
            "as in 'sample:20000'"
        )
    return int(count)


def score_rows_of(asked: int | None, inputs: int) -> int:
    """Return of how many rows of each of so many inputs heads are measured while capturing."""
    return asked or max(LEAST_SCORE_ROWS, SCORE_ROWS // max(1, inputs))


class Kept(StrEnum):
    """The tensors of a layer that can be stored."""

    query = "query"
    key = "key"
    value = "value"
    weights = "weights"


@dataclass(frozen=True)
class Reading:
    """The choice of inputs from a file."""

    column: str | None = option(None, "The column of a table that holds the text.")
    second_column: str | None = option(None, "The column of a second text, for pairs or targets.")
    limit: int | None = option(None, "At most so many inputs, drawn by seed.", min=1)


@dataclass(frozen=True)
class Capturing:
    """The options of a capture, which enter the fingerprint and the manifest."""

    keep: tuple[str, ...] = option(
        ("query", "key", "value"),
        "What to store; may be repeated.",
        type=list[Kept],
    )
    batch_size: int = option(8, "Inputs that run together.", min=1)
    generate: int = option(0, "Tokens to let the model write.", min=0)
    truncate: bool = option(False, "Cut inputs that are too long.")
    seed: int = option(0, "For everything that is drawn at random.", min=0, max=MOST_SEED)
    vectors: str = option(
        "all",
        "Whose vectors to keep: all, none, or sample:20000, a sample of whole inputs with so many "
        "tokens. Without all, heads are measured while capturing, on every input.",
    )
    shard_bytes: int = SHARD_BYTES
    projections: str = option(
        "auto",
        "Whose output projections to keep, for what heads move: auto (up to 256 MB), all, none.",
    )

    score_rows: int | None = option(
        None,
        "Rows of each input that heads are measured on, where not all vectors are kept. Unless "
        f"given, {SCORE_ROWS:,} of all inputs together, at least {LEAST_SCORE_ROWS} of each.",
        min=1,
    )

    def check(self) -> None:
        """Raise an InputError if an option is not possible."""
        unknown = [what for what in self.keep if what not in list(Kept)]
        if unknown or not self.keep:
            asked = ", ".join(unknown) or "nothing"
            raise InputError(f"asked to keep {asked}; keep some of {', '.join(Kept)}")
        sample_size(self.vectors)
        check_seed(self.seed)
        if self.generate < 0:
            raise InputError(f"asked to generate {self.generate} tokens; give 0 or more")
        if self.projections not in PROJECTIONS:
            raise InputError(
                f"projections is {self.projections!r}; give one of {', '.join(PROJECTIONS)}"
            )
        if self.score_rows is not None and self.score_rows < 1:
            raise InputError(f"score_rows is {self.score_rows}; give 1 or more")
        if self.batch_size < 1:
            raise InputError(
                f"the batch size is {self.batch_size}; give a batch size of at least 1"
            )
