"""What may a page ask the server or notebook to do?

An action is sent as JSON (POST, or a message of the notebook) and answered by a packet.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Compute:
    """`compute`: lay out all heads in the background; `progress` says how far it is."""

    method: str
    dims: int


@dataclass(frozen=True)
class Place:
    """`place`: place all tokens of a head on a map in the background; `progress` counts tokens."""

    map: str
    head: str


@dataclass(frozen=True)
class Cancel:
    """`cancel`: stop the running computation; finished heads are kept for the next run."""


@dataclass(frozen=True)
class Add:
    """`add`: let the live model read a new text."""

    text: str
    second: str | None = None


@dataclass(frozen=True)
class Added:
    """The new input i; ask for `about`, input/{i}, edges/{i}/… and extra/{name}/{group}/{i}."""

    input: int
    seconds: float
