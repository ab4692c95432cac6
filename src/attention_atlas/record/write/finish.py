"""How do the shards of a capture become an atlas with a manifest and a receipt?"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from attention_atlas.models.load import Loaded
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.write.options import NONE
from attention_atlas.record.write.output import KeptOutput, add_readout, keep_projections
from attention_atlas.record.write.planning import Planned
from attention_atlas.record.write.towers import Probed, towers, with_stored_errors
from attention_atlas.record.write.weight_correlation import weight_correlations
from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest, Receipt, Rows
from attention_atlas.store.output import OUTPUT
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import Writer

_LIBRARIES = ("attention-atlas", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Prepared:
    """What the manifest says of the model alone; it is computed while shards are written."""

    weight_correlation: dict[str, list[float]]
    output: KeptOutput


def prepare(planned: Planned, loaded: Loaded) -> Prepared:
    """Compute what depends on the trial and the model alone; the model must not run meanwhile."""
    plan, trial = planned.plan, planned.trial
    asked = plan.capturing.projections if plan.way != "outputs" else NONE
    return Prepared(weight_correlations(trial), keep_projections(trial, loaded, asked))


def finish(
    writer: Writer, planned: Planned, loaded: Loaded, options: dict[str, Any], prepared: Prepared
) -> None:
    """Join the shards into an atlas; its manifest lists `options`."""
    plan, trial = planned.plan, planned.trial
    exact = [layer for layer in plan.layers if layer.exact]
    run_error, rows = 0.0, Rows(0, 0)
    for part in writer.parts:
        run_error = worst(run_error, float(part.facts["run_error"]))
        rows += Rows(**part.facts.get("rows", {"compared": 0, "of": 0}))  # older journals lack it
    receipt = replace(trial.receipt, run_error=run_error, run=rows)
    about: dict[str, Any] = {
        "model": loaded.name,
        "revision": loaded.revision,
        "model_class": type(loaded.model).__name__,
        "towers": towers(trial, {(layer.tower, layer.number) for layer in exact}),
        "streams": tuple(dict.fromkeys(stream for layer in exact for stream in layer.streams)),
        "keep": plan.capturing.keep if plan.way != "outputs" else ("weights",),
        "options": {**options, "weight_correlation": prepared.weight_correlation},
        "versions": {name: version(name) for name in _LIBRARIES},
    }
    add_readout(prepared.output, trial, loaded, writer.token_ids())
    with ThreadPoolExecutor(1) as disk:  # written while weights are read back
        writing = disk.submit(_write_output, writer, prepared.output)
        can_read = {"query", "key"} <= set(about["keep"]) or "weights" in about["keep"]
        if can_read and not plan.capturing.generate and plan.kept != ():
            draft = writer.draft(receipt=receipt, **about)
            receipt = _compared_on_disk(receipt, writer, draft, planned)
        about["options"]["output"] = writing.result()
    writer.finish(receipt=receipt, **about)


def _compared_on_disk(
    receipt: Receipt, writer: Writer, draft: Manifest, planned: Planned
) -> Receipt:
    """Return the receipt with the errors of the weights that the shards give."""
    stored = StoredAtlas(writer.folder, draft, just_written=True)
    kept = {
        int(number): layers
        for part in writer.parts
        for number, layers in part.facts.get("strongest", {}).items()
    }
    probed = Probed(tuple(planned.tried), kept)
    return with_stored_errors(receipt, stored, planned.trial, probed)


def _write_output(writer: Writer, kept: KeptOutput) -> dict[str, Any]:
    """Write what is kept of the model's outputs; return what the manifest says about it."""
    if not kept.tensors:
        return kept.facts
    path = writer.folder / OUTPUT
    checksum = files.write_tensors(path, kept.tensors)
    return kept.facts | {"bytes": path.stat().st_size, "checksum": checksum}
