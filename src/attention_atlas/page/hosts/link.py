"""How does an address write what is picked? As the page itself does: see web/src/desk/picks.ts."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from attention_atlas.page.wire.picks import read_picks

_LISTS = ("heads", "kinds")  # written with commas


def link(address: str, picks: Mapping[str, Any]) -> str:
    """Return the address of a page with these picks; those of a new page are left out."""
    start = read_picks({})
    parts = {
        name: _written(name, value)
        for name, value in picks.items()
        if name == "tab" or value != start[name]
    }
    return f"{address}#{urlencode(parts, safe=',:')}"


def _written(name: str, value: Any) -> str:
    if name in _LISTS:
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)
