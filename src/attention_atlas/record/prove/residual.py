"""Does what a layer gives reach the final norm as it is? Found by adding up, not by names.

Norms are given the stream of the model. From one norm to the next the stream grows by what modules
in between gave. Walking back from the final norm, every step must be such a sum: then a layer that
is part of it adds to the final stream directly. A model with a norm after the sum (BERT) has no
such steps.
"""

from dataclasses import dataclass

from torch import Tensor

from attention_atlas.record.prove.outlets import ModuleRun, Outlets, SiteKey


@dataclass(frozen=True)
class Snapshot:
    """The stream, as one norm was given it."""

    event: int
    stream: Tensor  # (tokens, width)


def added_by(outlets: Outlets, bound: float) -> dict[SiteKey, str]:
    """Return the layers that add to the final stream, with the module that gives what is added.

    That is a layer's projection, or a module after it (a norm, a scale).
    """
    if outlets.read is None:
        return {}
    final = outlets.events[outlets.read.event].given
    if final is None:
        return {}
    snapshots = _snapshots(outlets, final)
    reached: dict[SiteKey, str] = {}
    later = Snapshot(outlets.read.event, final)
    for earlier in reversed(snapshots):
        grown = (later.stream - earlier.stream).double()
        size = float(later.stream.abs().max())
        between = outlets.events[earlier.event : later.event]
        sites = _sites(outlets, earlier.event, later.event)
        writes = _writes(outlets, sites, between)
        step = _explained(grown, writes, between, bound * size)
        if step is None:
            break
        reached |= step
        later = earlier
    return reached


def _snapshots(outlets: Outlets, final: Tensor) -> list[Snapshot]:
    """Return what the norms before the final one were given, each once, in order."""
    assert outlets.read is not None
    snapshots: list[Snapshot] = []
    recent: list[Tensor] = []
    for event, run in enumerate(outlets.events[: outlets.read.event]):
        given = run.given
        if run.matrix and given is not None and given.is_floating_point():  # no embedding
            recent = [*recent[-3:], run.gave]
        if run.matrix or not run.whole or given is None:
            continue
        if given.shape != final.shape or run.gave.shape != given.shape:
            continue
        if any(_equal(given, gave) for gave in recent):
            continue  # of what a projection gave: a norm or dropout after it
        if not snapshots or not _equal(given, snapshots[-1].stream):
            snapshots.append(Snapshot(event, given))
    return snapshots


def _equal(one: Tensor, two: Tensor) -> bool:
    return one.shape == two.shape and bool((one == two).all())


def _sites(outlets: Outlets, start: int, end: int) -> list[SiteKey]:
    return [site for site, outlet in outlets.found.items() if start <= outlet.event < end]


def _writes(
    outlets: Outlets, sites: list[SiteKey], between: list[ModuleRun]
) -> list[tuple[SiteKey, str, Tensor]]:
    """Return what each layer may add: what its projection gave, or a module that was given that."""
    writes = []
    for site in sites:
        outlet = outlets.found[site]
        own = outlets.events[outlet.event].gave
        writes.append((site, outlet.module, own))
        writes += [
            (site, run.module, run.gave)
            for run in between
            if run.given is not None and not run.matrix and _equal(run.given, own)
            and run.gave.shape == own.shape and not _equal(run.gave, own)
        ]  # fmt: skip
    return writes


def _explained(
    grown: Tensor, writes: list[tuple[SiteKey, str, Tensor]], between: list[ModuleRun], bound: float
) -> dict[SiteKey, str] | None:
    """Return which layers a growth of the stream contains; None if it is no sum of outputs."""

    def near(rest: Tensor) -> bool:
        return float(rest.abs().max()) <= bound

    others = [run.gave for run in between if run.gave.shape == grown.shape]
    for site, module, gave in writes:
        if gave.shape != grown.shape:
            continue
        rest = grown - gave.double()
        if near(rest) or any(near(rest - other.double()) for other in others):
            return {site: module}
    return {} if any(near(grown - other.double()) for other in others) or near(grown) else None
