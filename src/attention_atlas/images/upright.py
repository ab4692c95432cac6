"""How is a picture turned upright, in RGB, on white: as models and people see it?"""

import numpy as np
from PIL import Image, ImageOps

LUMA = np.array([0.2126, 0.7152, 0.0722])  # Rec. 709: how bright red, green and blue are
CYCLIC = {"hue": 360.0, "angle": 180.0}  # cyclic values and their periods


def upright(image: Image.Image) -> Image.Image:
    """Turn a picture as its EXIF says, in RGB; transparency shows white, 16 bits become 8."""
    turned = ImageOps.exif_transpose(image)
    if turned.mode.startswith(("I", "F")):
        return _in_eight_bits(turned).convert("RGB")
    if not turned.has_transparency_data:
        return turned.convert("RGB")
    layer = turned.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")


def _in_eight_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image, np.float64)
    most = 1.0 if image.mode == "F" and values.max(initial=0) <= 1 else 65535.0
    if most > 1 and values.max(initial=0) <= 255:
        most = 255.0
    return Image.fromarray(np.rint(np.clip(values / most, 0, 1) * 255).astype(np.uint8))
