"""What does each part of a picture show, as a segmentation model says?

A model that names every pixel (`logits`), or one that gives masks and what they are of; which, its
output says. Where its pixels lie in the picture is asked of its processor, as for any other.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from attention_atlas.images.pixel_origins import Axis, shown
from attention_atlas.models.batch import placed
from attention_atlas.models.load import Loaded
from attention_atlas.models.media import for_processor
from attention_atlas.models.processors import part
from attention_atlas.names.errors import ModelError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Segmented:
    """How likely each label is, over a grid that lies somewhere in the picture."""

    likely: Floats  # (labels, height, width)
    x: Axis  # per cell of the grid
    y: Axis

    def label(self, box: Floats) -> tuple[int, float]:
        """Find the label of most cells in a box, and their share; -1 where the box is outside."""
        columns = _inside(self.x, self.likely.shape[2], box[0], box[2])
        rows = _inside(self.y, self.likely.shape[1], box[1], box[3])
        if not len(columns) or not len(rows):
            return -1, 0.0
        cells = self.likely[:, rows][:, :, columns].argmax(0)
        counts = np.bincount(cells.reshape(-1), minlength=len(self.likely))
        return int(counts.argmax()), float(counts.max() / counts.sum())


def segment(loaded: Loaded, picture: Image.Image) -> Segmented:
    """Label one picture; returns its cells."""
    prepare: Any = part(loaded.processor, "image_processor")
    if prepare is None:
        raise ModelError(f"{loaded.name} has no image processor; pass one")
    given = for_processor(picture)

    def make(pictures: list[Image.Image]) -> Any:
        return prepare(images=pictures, return_tensors="pt")

    batch = make([given])
    pixels = {n: placed(v, loaded.model) for n, v in batch.items() if isinstance(v, torch.Tensor)}
    with torch.no_grad():
        likely = _likely(loaded.model(**pixels), loaded.name)
    seen = shown(make, [given.size])
    if seen is None or len(seen.frames) != 1:
        raise ModelError(f"{loaded.name} cuts pictures, so labels have no place; give another")
    frame, (_, high, wide) = seen.frames[0], likely.shape
    return Segmented(likely, _scaled(frame.x, frame.width, wide),
                     _scaled(frame.y, frame.height, high))  # fmt: skip


def names_of(loaded: Loaded) -> dict[int, str]:
    """Get number → name from the model's config."""
    known = getattr(loaded.model.config, "id2label", None) or {}
    return {int(number): str(name) for number, name in known.items()}


def _likely(output: Any, name: str) -> Floats:
    """Get how likely each label is: (labels, height, width)."""
    if getattr(output, "masks_queries_logits", None) is not None:
        kinds = output.class_queries_logits[0].float().softmax(-1)[:, :-1]  # the last is "nothing"
        masks = output.masks_queries_logits[0].float().sigmoid()
        return np.asarray(torch.einsum("qc,qhw->chw", kinds, masks).double().cpu().numpy())
    logits = getattr(output, "logits", None)
    if logits is None or logits.dim() != 4:
        raise ModelError(
            f"{name} does not name parts of a picture; give a model for semantic segmentation"
        )
    return np.asarray(logits[0].float().softmax(0).double().cpu().numpy())


def _scaled(axis: Axis, pixels: int, cells: int) -> Axis:
    """Count an axis in cells instead of pixels."""
    factor = pixels / cells
    first, last = (round(end / factor) for end in (axis.first, axis.last))
    return Axis(axis.start, axis.step * factor, first, max(last, first + 1))


def _inside(axis: Axis, cells: int, low: float, high: float) -> npt.NDArray[np.int64]:
    """Get the cells whose middles lie between two places, the nearest one if none does."""
    middles = axis.start + axis.step * (np.arange(cells) + 0.5)
    real = np.arange(axis.first, min(axis.last, cells))
    middle = (low + high) / 2
    if not len(real) or not 0 <= middle <= 1:
        return np.zeros(0, np.int64)
    inside = real[(middles[real] >= low) & (middles[real] < high)]
    return inside if len(inside) else real[[int(np.abs(middles[real] - middle).argmin())]]
