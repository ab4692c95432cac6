"""Which pictures and sounds are there, and how are they opened?

A folder is listed without opening a file. A picture is turned upright (EXIF) and made RGB; a sound
becomes mono floats between -1 and 1.
"""

import re
import warnings
import wave
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from attention_atlas.images.upright import upright
from attention_atlas.names.errors import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
SOUND_SUFFIXES = (".wav",)
_SAMPLE_TYPES = {1: np.uint8, 2: np.int16, 4: np.int32}


def images_in(folder: Path) -> list[Path]:
    """List the pictures of a folder in the order of a person: cat2 before cat10."""
    images = sorted(
        (path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES), key=_natural
    )
    if not images:
        raise InputError(
            f"folder {folder.name} has no images; give one with {', '.join(IMAGE_SUFFIXES)} files"
        )
    return images


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|\D+", path.name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def open_image(image: Any, coarse: bool = False) -> Image.Image:
    """Open a picture upright and in RGB; `image` is a path or an open picture."""
    if isinstance(image, Image.Image):
        return upright(image)
    path = Path(image)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as opened:
                if coarse:
                    opened.draft("RGB", (64, 64))
                return upright(opened)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        most = (Image.MAX_IMAGE_PIXELS or 0) // 10**6
        raise InputError(
            f"{path.name} has more than {most} million pixels; make it smaller"
        ) from error
    except FileNotFoundError as error:
        raise InputError(f"no file is called {path}; check the name and the folder") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{path.name} is not an image that can be opened; replace or remove it"
        ) from error


def can_open(image: Any) -> bool:
    """Tell whether a picture can be read; a JPEG is read coarsely, which is enough."""
    try:
        open_image(image, coarse=True)
    except InputError:
        return False
    return True


def for_processor(image: Image.Image) -> Image.Image:
    """Enlarge a picture 1 or 3 pixels high, whose rows would be taken for channels.

    Each pixel becomes 4 × 4 of the same colour, so nothing else about it changes.
    """
    if image.height not in (1, 3):
        return image
    return image.resize((4 * image.width, 4 * image.height), Image.Resampling.NEAREST)


def read_sound(path: Path) -> tuple["np.ndarray[Any, Any]", int]:
    """Samples of a PCM .wav file, channels averaged, and their rate."""
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise InputError(
            f"{path.name} is not a PCM .wav file ({error}); convert it to 16 bit PCM"
        ) from error
    if width not in _SAMPLE_TYPES:
        raise InputError(f"{path.name} has {8 * width} bit samples; convert it to 16 bit PCM")
    samples = np.frombuffer(data, _SAMPLE_TYPES[width]).reshape(-1, channels).astype(np.float32)
    if not samples.size:
        raise InputError(f"{path.name} is empty; give a sound with samples in it")
    middle = 128 if width == 1 else 0  # 8 bit .wav is unsigned
    return (samples - middle).mean(axis=1) / float(2 ** (8 * width - 1)), rate
