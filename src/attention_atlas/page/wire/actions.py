"""What may a page have done?

An action is sent as JSON (POST, or a message of the notebook) and answered by a packet.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Compute:
    """`compute`: lay all heads out in the background; `progress` tells how far it is."""

    method: str
    dims: int


@dataclass(frozen=True)
class Cancel:
    """`cancel`: stop what is being computed; what is done so far is kept for the next time."""


@dataclass(frozen=True)
class Add:
    """`add`: let the live model read a new text."""

    text: str
    second: str | None = None


@dataclass(frozen=True)
class Added:
    """The new input; ask for `about`, input/{i}, edges/{i}/… and extra/{name}/{group}/{i}."""

    input: int
    seconds: float
