"""What does one head of a long input do? tile/0/L5H1/2/0/3 · overview/0/L5H1/1 · …/0/sinks"""

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.find import check_input
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import tiles as wire


def tile(
    subject: Subject, number: int, name: str, level: int, row: int, column: int,
    without: str = "",
) -> wire.TilePacket:  # fmt: skip
    """Return one tile of a head."""
    raise _none_yet(subject, number, name)


def overview(
    subject: Subject, number: int, name: str, sampled: int, without: str = ""
) -> wire.Overview:
    """Return a whole head in one tile, from every 16th row (sampled 1) or from all rows (0)."""
    raise _none_yet(subject, number, name)


def _none_yet(subject: Subject, number: int, name: str) -> PickError:
    i, head = check_input(subject, number), Head.parse(name)
    return PickError(f"there are no tiles of {head} of input {i}; ask for its rows")
