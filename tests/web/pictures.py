"""Planted attention over pictures, answered to the real page without any model or server.

Head 0 looks at the next patch (0.9) and a little at the class token. Head 1 looks at itself. Head
2 looks at the class token. Head 3 looks at the patch that is as far from the end as it is from the
start. Layer 1 has them in the opposite order.
"""

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from playwright.sync_api import Page, Route

from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.wire.about import About, InputLine, LayerInfo, TowerInfo
from attention_atlas.page.wire.image import Gaze, Picture, PictureInfo
from attention_atlas.page.wire.packing import Failure, pack
from attention_atlas.page.wire.queue import Queued
from attention_atlas.page.wire.text import Edges, InputInfo, Stream, TokenColumns

Floats = npt.NDArray[np.float32]
Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
BLUE = (64, 128, 192)
HOME = "http://pictures.test/"
HEADS, LAYERS = 4, 2


@dataclass(frozen=True)
class Scene:
    """Tokens without a place are words before and after the patches."""

    sizes: list[tuple[int, int]]  # of each picture, in pixels
    grids: list[tuple[int, int, int, Box]]  # picture, rows, columns, the part that they show
    before: tuple[str, ...] = ("[CLS]",)
    after: tuple[str, ...] = ()
    colour: tuple[int, int, int] = BLUE

    def places(self) -> list[tuple[int, Box, int, int]]:
        """Picture, box, row and column of each patch, in order."""
        found = []
        for image, rows, columns, (left, top, right, bottom) in self.grids:
            wide, high = (right - left) / columns, (bottom - top) / rows
            for row in range(rows):
                for column in range(columns):
                    x, y = left + column * wide, top + row * high
                    found.append((image, (x, y, x + wide, y + high), row, column))
        return found

    @property
    def first(self) -> int:
        return len(self.before)

    def __len__(self) -> int:
        return len(self.before) + len(self.places()) + len(self.after)

    def weights(self) -> Floats:
        """(L, H, N, N)."""
        n, count = len(self), len(self.places())
        heads = np.zeros((HEADS, n, n), np.float32)
        heads[:, range(n), range(n)] = 1
        for at in range(count):
            i = self.first + at
            heads[:, i] = 0
            heads[0, i, self.first + (at + 1) % count] = 0.9 if self.before else 1
            heads[0, i, 0] += 0.1 if self.before else 0
            heads[1, i, i] = 1
            heads[2, i, 0] = 1
            heads[3, i, self.first + count - 1 - at] = 1
        for at, i in enumerate(range(self.first + count, n)):  # words look at one patch each
            heads[:, i] = 0
            heads[:, i, self.first + at] = 0.6
            heads[:, i, i] = 0.4
        return np.stack([heads, heads[::-1]])

    def stream(self) -> Stream:
        texts = [*self.before, *["patch"] * len(self.places()), *self.after]
        rows = [(-1, -1)] * len(texts)
        image = np.full(len(texts), -1, np.int16)
        box = np.full((len(texts), 4), np.nan, np.float32)
        for at, (picture, own, row, column) in enumerate(self.places(), self.first):
            rows[at], image[at], box[at] = (row, column), picture, own
        count = len(texts)
        special = [text.startswith(("[", "<")) for text in texts]
        row, column = np.array(rows, np.int32).T
        tokens = TokenColumns(
            texts, texts, np.full(count, -1, np.int32), np.array(special, np.uint8),
            np.zeros(count, np.uint8), np.arange(count, dtype=np.uint16),
            np.zeros(count, np.int16), np.full(count, -1, np.int32), row, column, count,
        )  # fmt: skip
        return Stream("image", tokens, image, box)

    def about(self) -> About:
        layers = [LayerInfo(i, HEADS, HEADS, 8, 8, False, "image", "image") for i in range(LAYERS)]
        return About(
            title="planted", model="planted", model_class="Planted", kind="atlas",
            receipt_line="", exact=True, inputs=[InputLine(0, "a picture", "image", False)],
            towers=[TowerInfo("vision", "self", "image", "image", LAYERS, layers)],
            has_values=False, notes=[], pictures=bool(self.sizes), patches=["image"],
        )  # fmt: skip

    def input(self) -> InputInfo:
        shown = [PictureInfo(*size, f"{i}.png") for i, size in enumerate(self.sizes)]
        return InputInfo(0, "a picture", None, -1, [self.stream()], shown)

    def edges(self) -> Edges:
        n, every = len(self), self.weights().reshape(-1, len(self))
        return Edges(
            0, "vision", list(range(LAYERS)), [HEADS] * LAYERS, [n] * LAYERS, [n] * LAYERS, n,
            None, every, np.zeros(len(every), np.uint16), None,
        )  # fmt: skip

    def gaze(self, layer: str, how: str) -> Gaze:
        """For the rollout we plant what head 3 of the first layer does."""
        own = self.weights()[int(layer)]
        if how.isdigit():
            weights = own[int(how)]
        else:
            weights = own.mean(0) if how == "mean" else self.weights()[0, 3]
        rounded = np.round(weights * 65535).astype(np.uint16)
        nothing = np.zeros(len(weights), np.uint8)
        best = rounded.argmax(1).astype(np.uint32)
        return Gaze(0, "vision", int(layer), how, rounded, best, nothing)

    def picture(self, number: str) -> Picture:
        width, height = self.sizes[int(number)]
        file = io.BytesIO()
        Image.new("RGB", (width, height), self.colour).save(file, "PNG")
        data = np.frombuffer(file.getvalue(), np.uint8)
        return Picture(0, int(number), "image/png", width, height, data)

    def answer(self, path: str) -> bytes:
        word, *rest = path.split("/")
        made: dict[str, Any] = {
            "about": self.about, "input": lambda _: self.input(), "edges": lambda *_: self.edges(),
            "gaze": lambda _, __, layer, how: self.gaze(layer, how),
            "picture": lambda _, number: self.picture(number), "queue": lambda _: Queued([]),
        }  # fmt: skip
        if word not in made:
            return pack(Failure(f"{word} is not planted"))
        return pack(made[word](*rest))


@cache
def _file(name: str) -> bytes:
    return Path(str(static(name))).read_bytes()


def serve(page: Page, scene: Scene) -> None:
    """From here on the page's own files and packets come from here."""

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(HOME).split("#")[0].split("?")[0]
        if name.startswith("api/"):
            route.fulfill(body=scene.answer(name.removeprefix("api/")))
        else:
            kind = {"": "text/html", "js": "text/javascript", "css": "text/css"}[
                name.rpartition(".")[2]
            ]
            route.fulfill(body=_file(name or "page.html"), content_type=kind)

    page.route(f"{HOME}**", answer)
