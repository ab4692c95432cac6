"""The colours of the heat-map, worked out here again from their definition in OKLCH."""

import numpy as np
import numpy.typing as npt


def heat_scale() -> npt.NDArray[np.float64]:
    """The 256 colours (sRGB bytes) of the light scale."""
    return np.array([_colour(step / 255) for step in range(256)])


def _colour(x: float) -> list[float]:
    lightness, hue = 0.985 - 0.63 * x, np.deg2rad(110 + 160 * x)
    chroma = 0.01 + 0.15 * np.sin(np.pi * min(1.0, x * 0.8))
    # Less chroma where a screen cannot show so much.
    while True:
        rgb = _linear(lightness, max(0.0, chroma), float(hue))
        if chroma <= 0 or (rgb.min() >= -0.001 and rgb.max() <= 1.001):
            break
        chroma -= 0.01
    clear = np.clip(rgb, 0, 1)
    bent = np.where(clear <= 0.0031308, 12.92 * clear, 1.055 * clear ** (1 / 2.4) - 0.055)
    return [float(value) for value in np.rint(255 * bent)]


def _linear(lightness: float, chroma: float, hue: float) -> npt.NDArray[np.float64]:
    """Ottosson's matrices (2020): OKLab to linear sRGB."""
    lab = np.array([lightness, chroma * np.cos(hue), chroma * np.sin(hue)])
    to_cone = np.array([
        [1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728],
        [1, -0.0894841775, -1.291485548],
    ])  # fmt: skip
    to_rgb = np.array([
        [4.0767416621, -3.3077115913, 0.2309699292], [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ])  # fmt: skip
    return np.asarray(to_rgb @ (to_cone @ lab) ** 3)
