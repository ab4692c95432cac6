"""Which part of a picture does a placeholder inside a text stand for?

A multimodal language model reads one token for each feature of its pictures. The features have the
order of the vision tower's patches: one per patch, one per block of patches, or packed by a
function of the model. That function is called with places in place of features.
"""

import inspect
from typing import Any

import numpy as np
import torch
from torch import nn

from attention_atlas.images.pixel_origins import Patches, Shown
from attention_atlas.record.places.patch_seats import Floats, Ints, grids

_ID_NAMES = ("image_token_id", "image_token_index")
_LARGEST_BLOCK = 16


def text_seats(
    model: nn.Module, ids: list[int], shown: Shown, tensors: dict[str, Any]
) -> tuple[Ints, Floats] | None:
    """Return each token's picture (N,), -1: none, and box (N, 4); None if no token has one."""
    config: Any = getattr(model, "config", None)
    known = {getattr(config, name, None) for name in _ID_NAMES} - {None}
    places = [index for index, number in enumerate(ids) if number in known]
    if not places:
        return None
    features = _features(model, config, shown, tensors, len(places))
    image, box = np.full(len(ids), -1), np.full((len(ids), 4), np.nan)
    if features is None:
        image[places] = 0 if _pictures(shown) == 1 else -1
    else:
        image[places], box[places] = features
    return image, box


def grid_places(box: Floats) -> tuple[Ints, Ints]:
    """Return the row and the column (N,) of each box in a grid of boxes of its size."""
    has_box = ~np.isnan(box).any(1)
    row, column = np.full(len(box), -1), np.full(len(box), -1)
    middle, size = (box[:, :2] + box[:, 2:]) / 2, box[:, 2:] - box[:, :2]
    column[has_box], row[has_box] = np.floor(middle[has_box] / size[has_box] + 1e-6).astype(int).T
    return np.maximum(row, -1), np.maximum(column, -1)


def _pictures(shown: Shown) -> int:
    images = shown.patches.image if shown.patches else [frame.image for frame in shown.frames]
    return len({int(image) for image in images if image >= 0})


def _features(
    model: nn.Module, config: Any, shown: Shown, tensors: dict[str, Any], count: int
) -> tuple[Ints, Floats] | None:
    if shown.patches is not None:
        return _runs(shown.patches, count)
    packed = _packed(model, config, shown, tensors)
    if packed is not None:
        return packed if len(packed[0]) == count else None
    return _blocks(config, shown, count)


def _runs(patches: Patches, count: int) -> tuple[Ints, Floats] | None:
    """Return picture and box of `count` tokens, each of which joins successive patches."""
    real = patches.image >= 0
    image, box = patches.image[real], patches.box[real]
    if not count or len(image) % count:
        return None
    runs = box.reshape(count, -1, 4)
    low, high = np.nanmin(runs[:, :, :2], axis=1), np.nanmax(runs[:, :, 2:], axis=1)
    return image.reshape(count, -1)[:, 0], np.concatenate([low, high], 1)


def _blocks(config: Any, shown: Shown, count: int) -> tuple[Ints, Floats] | None:
    """Return picture and box of `count` tokens: squares of patches, or class token and patches."""
    frames = [frame for frame in shown.frames if frame.image >= 0]
    for side in range(1, _LARGEST_BLOCK + 1):
        for extra in (0, 1) if side == 1 else (0,):
            image: list[int] = []
            box: list[tuple[float, ...]] = []
            for frame in frames:
                rows, columns, (high, wide) = next(grids(config, frame))
                image += [-1] * extra
                box += [(np.nan,) * 4] * extra
                for row in range(rows // side):
                    for column in range(columns // side):
                        top, left = row * side * high, column * side * wide
                        image.append(frame.image)
                        box.append(frame.box(top, left, top + side * high, left + side * wide))
            if len(image) == count:
                return np.array(image), np.array(box, np.float64)
    return None


def _packed(
    model: Any, config: Any, shown: Shown, tensors: dict[str, Any]
) -> tuple[Ints, Floats] | None:
    """Return picture and box of each token, as the model itself packs its tiles, or None."""
    owner = next((m for m in (getattr(model, "model", None), model) if _can_pack(m)), None)
    sizes = tensors.get("image_sizes")
    if owner is None or sizes is None or tensors["pixel_values"].dim() != 5:
        return None
    count = max(frame.image for frame in shown.frames) + 1
    features = [_tiles(config, shown, image) for image in range(count)]
    given = {
        "image_features": features,
        "image_sizes": sizes,
        "vision_feature_select_strategy": getattr(config, "vision_feature_select_strategy", None),
        "vision_aspect_ratio": getattr(config, "vision_aspect_ratio", None),
    }
    if getattr(owner, "image_newline", None) is not None:
        given["image_newline"] = torch.full((4,), torch.nan)
    wanted = inspect.signature(owner.pack_image_features).parameters
    joined, _ = owner.pack_image_features(**{k: v for k, v in given.items() if k in wanted})
    parts = [np.asarray(boxes, np.float64) for boxes in joined]
    image = np.concatenate([np.full(len(part), number) for number, part in enumerate(parts)])
    box = np.concatenate(parts)
    return np.where(np.isnan(box).any(1), -1, image), box


def _can_pack(model: Any) -> bool:
    pack = getattr(model, "pack_image_features", None)
    return pack is not None and "image_features" in inspect.signature(pack).parameters


def _tiles(config: Any, shown: Shown, image: int) -> torch.Tensor:
    """Return the boxes of a picture's patches, (tiles, patches, 4)."""
    tiles = []
    for frame in shown.frames:
        if frame.image == image:
            rows, columns, (high, wide) = next(grids(config, frame))
            tiles.append(
                [
                    frame.box(r * high, c * wide, (r + 1) * high, (c + 1) * wide)
                    for r in range(rows)
                    for c in range(columns)
                ]
            )
    return torch.tensor(tiles, dtype=torch.float32)
