"""What does the vision model look at? Coloured shapes and patterns, drawn here.

Eight kinds are a shape somewhere on a background; four are a pattern that fills the image. A shape
is given by a function that is negative inside and positive outside, in units of its radius; a
pattern by one that runs from 0 (first colour) to 1 (second colour), in pixels.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

SIZE = 64
NOISE = 0.03

Plane = Callable[[Tensor, Tensor], Tensor]


def disc(x: Tensor, y: Tensor) -> Tensor:
    return torch.hypot(x, y) - 1


def ring(x: Tensor, y: Tensor) -> Tensor:
    return (torch.hypot(x, y) - 0.8).abs() - 0.2


def square(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x.abs(), y.abs()) - 0.8


def cross(x: Tensor, y: Tensor) -> Tensor:
    long, short = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    return torch.maximum(long - 1, short - 0.28)


def sides(x: Tensor, y: Tensor, count: int) -> Tensor:
    """How far out along each side's normal, (count, …)."""
    angles = [2 * math.pi * side / count for side in range(count)]
    return torch.stack([x * math.cos(angle) + y * math.sin(angle) for angle in angles])


def triangle(x: Tensor, y: Tensor) -> Tensor:
    return sides(x, y, 3).amax(0) - 0.5


def star(x: Tensor, y: Tensor) -> Tensor:
    """Five points: a point of it lies beyond at most one side of the pentagon in the middle."""
    return sides(x, y, 5).topk(2, dim=0).values[1] - math.cos(2 * math.pi / 5)


def crescent(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(disc(x, y), 0.85 - torch.hypot(x - 0.5, y))


def heart(x: Tensor, y: Tensor) -> Tensor:
    """(x² + y² − 1)³ = x²y³, with the root taken so that the edge is as soft as the others'."""
    x, y = 1.2 * x, 1.2 * y
    value = (x**2 + y**2 - 1) ** 3 - x**2 * y**3
    return value.sign() * value.abs() ** (1 / 3) / 2


def gradient(x: Tensor, y: Tensor) -> Tensor:
    return (0.5 + x / SIZE).clamp(0, 1) + 0 * y


def grating(x: Tensor, y: Tensor) -> Tensor:
    return 0.5 + 0.5 * torch.sin(x * 2 * math.pi / 12) + 0 * y


def checks(x: Tensor, y: Tensor) -> Tensor:
    waves = torch.sin(x * 2 * math.pi / 18) * torch.sin(y * 2 * math.pi / 18)
    return 0.5 + 0.5 * torch.tanh(8 * waves)


def dots(x: Tensor, y: Tensor) -> Tensor:
    waves = torch.cos(x * 2 * math.pi / 14) + torch.cos(y * 2 * math.pi / 14)
    return torch.sigmoid(6 * (waves - 1))


SHAPES: dict[str, Plane] = {
    "disc": disc,
    "ring": ring,
    "square": square,
    "cross": cross,
    "triangle": triangle,
    "star": star,
    "crescent": crescent,
    "heart": heart,
}
PATTERNS: dict[str, Plane] = {
    "gradient": gradient,
    "grating": grating,
    "checks": checks,
    "dots": dots,
}
KINDS = [*SHAPES, *PATTERNS]


class Pencil:
    """Draws images of each kind on one device; the same seed draws the same images there."""

    def __init__(self, device: torch.device, seed: int) -> None:
        self.random = torch.Generator(device).manual_seed(seed)
        axis = torch.arange(SIZE, device=device) + 0.5 - SIZE / 2
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")  # (64, 64)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        chance = torch.rand(shape, generator=self.random, device=self.random.device)
        return low + (high - low) * chance

    def turned(self, count: int, shift: float) -> tuple[Tensor, Tensor]:
        """Pixel coordinates (count, 64, 64), moved by up to `shift` and turned by any angle."""
        angle = self.uniform(0, 2 * math.pi, count, 1, 1)
        x = self.x - self.uniform(-shift, shift, count, 1, 1)
        y = self.y - self.uniform(-shift, shift, count, 1, 1)
        return angle.cos() * x + angle.sin() * y, angle.cos() * y - angle.sin() * x

    def pattern(self, count: int, plane: Plane) -> Tensor:
        """(count, 1, 64, 64) from 0 to 1."""
        x, y = self.turned(count, shift=8)
        scale = self.uniform(0.7, 1.4, count, 1, 1)
        return plane(x * scale, y * scale)[:, None]

    def shape(self, count: int, plane: Plane) -> Tensor:
        """(count, 1, 64, 64): 1 inside, 0 outside, between on the edge."""
        x, y = self.turned(count, shift=14)
        radius = self.uniform(9, 20, count, 1, 1)
        return (0.5 - radius * plane(x / radius, y / radius)).clamp(0, 1)[:, None]

    def colours(self, count: int) -> tuple[Tensor, Tensor]:
        """Two colours (count, 3, 1, 1) at least 0.3 apart in every channel, the circle closed."""
        first = self.uniform(0, 1, count, 3, 1, 1)
        return first, (first + self.uniform(0.3, 0.7, count, 3, 1, 1)) % 1

    def patterns(self, count: int, plane: Plane) -> Tensor:
        first, second = self.colours(count)
        return torch.lerp(first, second, self.pattern(count, plane))

    def background(self, count: int) -> tuple[Tensor, Tensor]:
        """Faint patterns of every kind (count, 3, 64, 64), and a colour that stands out."""
        first, other = self.colours(count)
        toward = self.uniform(0, 1, count, 3, 1, 1)
        each = [self.pattern(count, plane) for plane in PATTERNS.values()]
        which = (self.uniform(0, len(each), count)).long()
        pattern = torch.stack(each)[which, torch.arange(count, device=which.device)]
        return torch.lerp(first, first + 0.4 * (toward - first), pattern), other

    def shapes(self, count: int, plane: Plane) -> Tensor:
        background, colour = self.background(count)
        return torch.lerp(background, colour, self.shape(count, plane))

    def draw(self, each: int) -> tuple[Tensor, Tensor]:
        """`each` images of every kind as 8-bit (images, 3, 64, 64), and the kinds' numbers."""
        images = torch.cat(
            [self.shapes(each, plane) for plane in SHAPES.values()]
            + [self.patterns(each, plane) for plane in PATTERNS.values()]
        )
        noise = torch.randn(images.shape, generator=self.random, device=images.device)
        labels = torch.arange(len(KINDS), device=images.device).repeat_interleave(each)
        return ((images + NOISE * noise).clamp(0, 1) * 255).round().to(torch.uint8), labels
