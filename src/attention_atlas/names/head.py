"""What is a head called?

`L5H1`: layer and head, both from zero, on the command line, in links and in labels.
In a model with several towers the tower comes first: `cross.L5H1`.
"""

import re
from dataclasses import dataclass

from attention_atlas.names.errors import PickError

_NAME = re.compile(r"(?:(?P<tower>[\w-]+)\.)?L(?P<layer>\d{1,9})H(?P<head>\d{1,9})")


@dataclass(frozen=True, order=True)
class Head:
    """One attention head; `tower` is empty where the model has only one."""

    tower: str
    layer: int
    head: int

    def __str__(self) -> str:
        name = f"L{self.layer}H{self.head}"
        return f"{self.tower}.{name}" if self.tower else name

    @classmethod
    def parse(cls, name: "str | Head") -> "Head":
        """Read a name such as L5H1 or cross.L5H1 and return its Head."""
        if isinstance(name, Head):
            return name
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if not match:
            shown = repr(name) if len(repr(name)) <= 60 else f"{repr(name)[:60]}…"
            raise PickError(f"no head is named {shown}; write layer and head from zero, as in L5H1")
        return cls(match["tower"] or "", int(match["layer"]), int(match["head"]))
