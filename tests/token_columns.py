"""The tokens of a packet, one dictionary each, read from their columns."""

from typing import Any


def token_list(stream: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tokens of an unpacked stream."""
    columns = stream["tokens"]
    return [
        {
            "text": columns["texts"][entry],
            "raw": columns["raws"][entry],
            "id": int(columns["ids"][entry]),
            "special": bool(columns["special"][entry]),
            "punctuation": bool(columns["punctuation"][entry]),
            "segment": int(columns["segment"][position]),
            "word": int(columns["word"][position]),
            "row": -1 if columns["row"] is None else int(columns["row"][position]),
            "column": -1 if columns["column"] is None else int(columns["column"][position]),
            "generated": position >= columns["generated"],
        }
        for position, entry in enumerate(columns["entry"])
    ]
