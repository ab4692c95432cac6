"""Requests that nobody should send: every route with random and hostile parts.

    python -m tests.page.hostile --seconds 300

sends them to a server of three atlases, one of them with its model, and prints how each kind of
route answered. An answer of 500, or one that is no packet with a sentence, is a defect of ours.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.live.actions import ACTIONS
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack

HERE = "http://127.0.0.1:8642"
MARKUP = "<img src=x onerror=alert(1)>"
WORDS = [
    "", "0", "1", "-1", "00", "1e9", "999999999", "9" * 30, "1.5", "nan", "٣", "L0H0", "L99H0",
    "L0H99", "decoder.L1H1", "cross.L0H0", "L" + "9" * 40 + "H0", "decoder", "encoder", "text",
    "query", "key", "pca-2d", "umap-2d", "tsne-3d", "position", "side", "token", "sinks", "0,1,2",
    "0-3", "3-0", "0-99999", "0,,1", "first", "mean", "rollout", "max", "none", "100000000",
    "100000001", "..", "../..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "%0d%0aX: y", "%ff",
    "%ud800", "C:\\", "~", "*", "'", '"', "${x}", "{{7*7}}", MARKUP, "🙂", "a" * 150, "constructor",
    "__class__", "null", "true", "[]", "{}", ";", "?", "#",
]  # fmt: skip
# What is right in each part of an address; the other parts of a path are mostly right, too.
RIGHT = {
    "input": ["0", "1"], "head": ["L0H0", "L1H1", "decoder.L0H1"], "tower": ["decoder", "encoder"],
    "layer": ["0", "1"], "rows": ["0-3", "first"], "columns": ["0-3"], "level": ["0", "1"],
    "row": ["0"], "column": ["0", "position"], "without": ["sinks", "0,1"], "sampled": ["0", "1"],
    "picture": ["0"], "how": ["mean", "rollout", "L0H0"], "name": ["pca-2d"], "side": ["query"],
    "group": ["decoder"], "position": ["0", "3"], "stream": ["text"], "which": ["0", "0,1"],
    "place": ["0"], "page": ["me"], "map": ["pca-2d"], "direction": ["0"], "token": ["5"],
    "against": ["6"],
}  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 1, 3, 10**30, -(10**30), 1.5, 1e308, "", "x", "L0H0", "all", "pca", "umap",
    "\ud800", "\x00", MARKUP, "../../etc/passwd", "a" * 5000, [], [1], [[1, 0]], ["x"], [None], {},
    {"a": 1}, [[]], [0] * 100, "zero", "mean", "query", "even", 0.5,
]  # fmt: skip
EDITS: dict[str, list[str]] = {
    "ablate": ["by", "positions", "from", "seed"], "scale": ["by", "positions"],
    "mask": ["tokens", "token", "edges"], "pattern": ["pattern", "sink", "recent"],
    "neuron": ["side", "index", "value", "positions"], "patch": ["what", "from", "align"],
}  # fmt: skip
FIELDS: dict[str, list[str]] = {
    "compute": ["method", "dims"], "place": ["map", "head"], "cancel": [],
    "leave": ["page", "ticket"], "add": ["text", "second"],
    "edit": ["input", "edits", "at", "generate"], "test_label": ["head"],
}  # fmt: skip


def paths(draw: random.Random) -> Iterator[str]:
    """Yields addresses of packets: some parts as they should be, anything in the others."""
    while True:
        packet = PACKETS[draw.choice(list(PACKETS))]
        wild = draw.choice([0.0, 0.3, 0.3, 1.0])
        parts = [
            draw.choice(WORDS if draw.random() < wild else RIGHT[part["name"]])
            for part in packet.parts
        ]
        if draw.random() < 0.2:
            parts = draw.choice([parts[:-1], [*parts, draw.choice(WORDS)]])
        start = draw.choice(["/api/", "/1/api/", "/2/api/", "/api/", "/9/api/", "/api//"])
        yield start + "/".join([packet.word, *parts])


def bodies(draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yields actions: mostly the right fields, with anything in them."""
    while True:
        name = draw.choice([*ACTIONS, "about", "nothing"])
        fields = FIELDS.get(name, ["x"])
        body: Any = {field: draw.choice(VALUES) for field in fields if draw.random() < 0.9}
        if name == "edit":
            body = _edited(draw)
        if draw.random() < 0.1:
            body = draw.choice(VALUES)
        raw = json.dumps(body).encode("utf-8", "surrogatepass")
        if draw.random() < 0.1:  # not even JSON
            raw = bytes(draw.randrange(256) for _ in range(draw.randrange(60)))
        yield f"{draw.choice(['/api/', '/1/api/', '/2/api/'])}{name}", raw


def _edited(draw: random.Random) -> dict[str, Any]:
    """Draws the body of an edit; about half of them can be made."""
    right: list[tuple[str, dict[str, Any]]] = [
        ("ablate", {}), ("scale", {"by": 0.5}), ("mask", {"tokens": [1]}),
        ("pattern", {"pattern": "even"}), ("neuron", {"side": "key", "index": 1, "value": 0.0}),
        ("patch", {"what": "output", "from": 1}),
    ]  # fmt: skip
    kind, fields = draw.choice(right)
    edit = {"edit": kind, "heads": ["L0H0"], **fields}
    body: dict[str, Any] = {"input": 0, "edits": [edit], "at": None, "generate": 0}
    if draw.random() < 0.6:
        edit[draw.choice([*EDITS[kind], "heads"])] = draw.choice(VALUES)
    if draw.random() < 0.3:
        body[draw.choice(["input", "at", "generate"])] = draw.choice(VALUES)
    return body


def outcome(answer: Any) -> str:
    """Says how a request was answered; an AssertionError says that it was answered wrongly."""
    assert answer.status_code != 500, answer.request.url
    if answer.status_code in (200, 307):
        return str(answer.status_code)
    assert answer.headers["content-type"] == "application/octet-stream", (answer.url, answer.text)
    sentence = unpack(answer.content)["error"]
    assert sentence and "Traceback" not in sentence and len(sentence) < 1000, sentence
    return str(answer.status_code)


def attack(client: TestClient, draw: random.Random, requests: int) -> "Counter[tuple[str, str]]":
    """Sends so many requests; returns how often each word was answered in each way."""
    gets, posts, counts = paths(draw), bodies(draw), Counter[tuple[str, str]]()
    for _ in range(requests):
        if draw.random() < 0.75:
            path = next(gets)
            answer = client.get(path)
            word = path.partition("/api/")[2].lstrip("/").partition("/")[0]
            counts["GET " + word, outcome(answer)] += 1
        else:
            path, raw = next(posts)
            kind = draw.choice(["application/json"] * 9 + ["text/plain"])
            answer = client.post(path, content=raw, headers={"Content-Type": kind})
            counts["POST " + path.rpartition("/")[2], outcome(answer)] += 1
    return counts


def table(counts: "Counter[tuple[str, str]]") -> str:
    """Writes the counts as a table: a line a route, a column a status."""
    statuses = sorted({status for _, status in counts})
    lines = ["| request | " + " | ".join(statuses) + " |", "|---" * (len(statuses) + 1) + "|"]
    lines += [
        f"| {word} | " + " | ".join(str(counts[word, status]) for status in statuses) + " |"
        for word in sorted({word for word, _ in counts})
    ]
    return "\n".join(lines)


def main() -> None:
    from tests import atlases

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gpt, bert, seq2seq = (
            make(Path(folder)) for make in (atlases.gpt, atlases.bert, atlases.seq2seq)
        )
        gpt.layout("pca", progress=False)
        app = make_app([gpt, bert, seq2seq], models=[LiveModel("builtin:gpt"), None, None])
        client, counts = TestClient(app, base_url=HERE), Counter[tuple[str, str]]()
        draw, end = random.Random(asked.seed), time.monotonic() + asked.seconds
        while time.monotonic() < end:
            counts += attack(client, draw, 50)
    print(table(counts))
    print(f"\n{counts.total()} requests, seed {asked.seed}, none answered otherwise")


if __name__ == "__main__":
    main()
