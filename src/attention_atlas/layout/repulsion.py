"""How strongly do all points push each other apart, without looking at every pair?

One potential is enough: φ_i = Σ_j 1 / (1 + |y_i − y_j|²), itself included. Its sum is t-SNE's
normaliser (less the points themselves) and minus half its slope is the force
Σ_j (y_i − y_j) / (1 + |y_i − y_j|²)². So one charge and one kernel do what FIt-SNE does with
three or four: points are spread on a mesh by cubic B-splines, the mesh is convolved with the
kernel by FFT, and potential and slope are read back with the same splines. 2-D and 3-D, any device.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

SPACING = {2: 1 / 2, 3: 1.0}  # of the mesh; the kernel is about 1 wide
MOST_NODES = {2: 2048, 3: 160}  # an axis; a wider map gets a coarser mesh
PAIRS_A_CELL = 8  # a cell of the padded mesh costs about as much as this many pairs
CELLS_CPU, CELLS_CUDA = 1 << 20, 1 << 30  # of the heads that share one pass
PAIRS = 1 << 18  # computed in one piece; they stay in the cache
FEW = 2500  # points: up to this many, every pair is computed whatever it costs


def repulsion(places: Tensor, of: int = 0) -> tuple[Tensor, Tensor]:
    """Get potential (heads, points) and force (heads, points, dims) by the cheaper of two ways.

    of  points of the whole map, where these are one crowd of it

    On a mesh a clump of many copies of a point is pushed a little by its own image, which holds it
    where it is. A small map is often nothing but such clumps, so it gets the exact sums.
    """
    points, dims = places.shape[1:]
    _, side = _mesh(places)
    if max(points, of) <= FEW or points**2 <= PAIRS_A_CELL * _fast_size(2 * side - 1) ** dims:
        return pair_repulsion(places)
    return mesh_repulsion(places)


def pair_repulsion(places: Tensor) -> tuple[Tensor, Tensor]:
    """Sum over every pair, in pieces: for few points, and the reference of the mesh."""
    heads, points, dims = places.shape
    across = places.transpose(1, 2).contiguous()  # (heads, dims, points)
    with_one = torch.nn.functional.pad(across, (0, 0, 0, 1), value=1.0)
    tall = max(1, min(points, PAIRS // (heads * points)))
    scratch = places.new_empty(2, heads, tall, points)
    potential, force = [], []
    for piece in torch.split(places, tall, 1):
        near, gap = scratch[:, :, : piece.shape[1]]
        near.fill_(1)
        for axis in range(dims):
            torch.sub(piece[:, :, axis, None], across[:, None, axis], out=gap)
            near.addcmul_(gap, gap)
        potential.append(near.reciprocal_().sum(2))
        # the long side last: a product with few columns takes six times as long on a CPU
        sums = (with_one @ near.square_().transpose(1, 2)).transpose(1, 2)
        force.append(piece * sums[..., -1:] - sums[..., :-1])
    return torch.cat(potential, 1), torch.cat(force, 1)


def mesh_repulsion(places: Tensor) -> tuple[Tensor, Tensor]:
    """Sum by interpolation on a mesh; returns the same as `pair_repulsion`."""
    dims = places.shape[2]
    step, side = _mesh(places)
    low = places.amin(1, keepdim=True)
    size = _fast_size(2 * side - 1)
    together = max(1, (CELLS_CUDA if places.is_cuda else CELLS_CPU) // size**dims)
    parts = [
        _through_mesh((part - origin) / step, side, _spectrum(size, dims, step, places.device))
        for part, origin in zip(
            torch.split(places, together), torch.split(low, together), strict=True
        )
    ]
    potential = torch.cat([part[0] for part in parts])
    slope = torch.cat([part[1] for part in parts])
    return potential, slope.mul_(-0.5 / step)


def _mesh(places: Tensor) -> tuple[float, int]:
    """Choose spacing and nodes per axis: a spline reaches one node before its cell, two after."""
    dims = places.shape[2]
    span = float((places.amax(1) - places.amin(1)).max())
    step = SPACING[dims]
    while span / step + 5 > MOST_NODES[dims]:
        step *= 2
    return step, int(span / step) + 5


def _through_mesh(at: Tensor, side: int, spectrum: Tensor) -> tuple[Tensor, Tensor]:
    """Get potential and slope of places; all in mesh units."""
    heads, points, dims = at.shape
    at = at.permute(2, 0, 1).contiguous()  # (dims, heads, points)
    cell = at.floor()
    spline, slope = _bspline(at - cell)  # (4, dims, heads, points)
    node = _nodes(cell.long(), side)  # (4**dims, heads, points)
    weight = spline[:, 0]
    for axis in range(1, dims):
        weight = (weight[:, None] * spline[None, :, axis]).flatten(0, 1)
    mesh = torch.zeros(heads * side**dims, device=at.device)
    mesh = _spread(mesh, node.view(-1), weight.reshape(-1))
    field = _convolve(mesh.view(heads, *[side] * dims), spectrum).reshape(-1)
    value = field.index_select(0, node.view(-1)).view(*[4] * dims, heads, points)
    return _read(value, spline, slope)


def _read(value: Tensor, spline: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Contract the values at 4**dims nodes, axis by axis, with splines and with one slope."""
    dims = spline.shape[1]
    partial: list[Tensor] = []  # value contracted so far, with the slope taken on one axis
    for axis in reversed(range(dims)):
        partial = [(part * spline[:, axis]).sum(axis) for part in partial]
        partial.append((value * slope[:, axis]).sum(axis))
        value = (value * spline[:, axis]).sum(axis)
    return value, torch.stack(partial[::-1], 2)


def _nodes(cell: Tensor, side: int) -> Tensor:
    """Number the 4**dims nodes around each place; heads lie one after another."""
    dims, heads, _ = cell.shape
    near = torch.arange(4, device=cell.device)
    base = torch.arange(heads, device=cell.device)[:, None]
    reach = near.new_zeros(1)
    for axis in range(dims):
        base = base * side + cell[axis]
        reach = (reach[:, None] * side + near).view(-1)
    return base + reach[:, None, None]


def _spread(mesh: Tensor, node: Tensor, weight: Tensor) -> Tensor:
    if not mesh.is_cuda:
        return mesh.scatter_add_(0, node, weight)
    # whole numbers add up to the same sum in any order, so that a run on CUDA repeats
    whole = torch.zeros_like(mesh, dtype=torch.int64)
    whole.scatter_add_(0, node, (weight * 2.0**32).long())
    return whole.to(mesh.dtype).mul_(2.0**-32)


def _convolve(mesh: Tensor, spectrum: Tensor) -> Tensor:
    """Convolve with zero padding; each axis is padded only when it is transformed."""
    side, dims, size = mesh.shape[1], spectrum.ndim, spectrum.shape[0]
    waves = torch.fft.rfft(mesh, n=size, dim=dims)
    for axis in range(dims - 1, 0, -1):
        waves = torch.fft.fft(waves, n=size, dim=axis)
    waves *= spectrum
    for axis in range(1, dims):
        waves = torch.fft.ifft(waves, dim=axis).narrow(axis, 0, side)
    field: Tensor = torch.fft.irfft(waves, n=size, dim=dims)
    return field.narrow(dims, 0, side)


@lru_cache(maxsize=4)
def _spectrum(size: int, dims: int, step: float, device: torch.device) -> Tensor:
    """Divide the kernel's transform by that of the two splines, so that mesh values are exact."""
    away = torch.arange(size, dtype=torch.float64, device=device)
    smooth = ((4 + 2 * torch.cos(2 * math.pi * away / size)) / 6).square()
    squares = torch.minimum(away, size - away).mul_(step).square()
    distance, blur = squares, smooth
    for _ in range(1, dims):
        distance = distance[..., None] + squares
        blur = blur[..., None] * smooth
    waves: Tensor = torch.fft.rfftn(1 / (1 + distance)).real
    return (waves / blur[..., : waves.shape[-1]]).float()


def _bspline(t: Tensor) -> tuple[Tensor, Tensor]:
    """Get the four cubic B-spline weights at offset t in a cell, and their slopes: (4, …) each."""
    u, t2, t3 = 1 - t, t * t, t * t * t
    value = [u * u * u, 3 * t3 - 6 * t2 + 4, 3 * (t + t2 - t3) + 1, t3]
    slope = [-u * u, 3 * t2 - 4 * t, 1 + 2 * t - 3 * t2, t2]
    return torch.stack(value).div_(6), torch.stack(slope).div_(2)


def _fast_size(least: int) -> int:
    """Find an even size at or above `least` whose only other factors are 3 (at most twice)."""
    return min(
        size
        for three in (1, 3, 9)
        for size in (three << max(1, math.ceil(math.log2(max(least, 16) / three))),)
    )
