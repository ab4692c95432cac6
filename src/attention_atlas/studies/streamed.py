"""How is a model run over batches of inputs that come one after the other, without an atlas?

The first batch is tried in every way, as in a capture, and makes the plan; all batches are checked
against the model as those of a capture are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_atlas.names.head import Head
from attention_atlas.store.files import Array

if TYPE_CHECKING:
    from attention_atlas.models.inputs import Input
    from attention_atlas.models.load import Loaded
    from attention_atlas.record.write.options import Capturing
    from attention_atlas.record.write.plan import CapturePlan
    from attention_atlas.record.write.shard import Bench
    from attention_atlas.store.manifest import Layer, Tower
    from attention_atlas.store.parts import Contents


class StreamedModel:
    """A loaded model, and the plan of its first batch."""

    def __init__(self, loaded: "Loaded", capturing: "Capturing"):
        self.loaded, self.capturing = loaded, capturing
        self._bench: Bench | None = None
        self._together = False  # whether several inputs were tried together

    def run(self, inputs: "list[Input]") -> "StreamedBatch":
        """Run the model over one batch."""
        from attention_atlas.record.write.corpus import Corpus
        from attention_atlas.record.write.shard import Bench, run_inputs

        corpus = Corpus(self.loaded, dict(enumerate(inputs)), self.capturing.truncate)
        if self._bench is None or (len(inputs) > 1 and not self._together):
            self._bench = Bench(self._plan(corpus), self.loaded)
            self._together = len(inputs) > 1
        run = run_inputs(self._bench, corpus, range(len(inputs)))
        return StreamedBatch(run.contents(everything=True), self._bench.plan, len(inputs))

    def _plan(self, corpus: Any) -> "CapturePlan":
        from attention_atlas.record.write.planning import make_plan
        from attention_atlas.record.write.towers import towers

        planned = make_plan(corpus, self.capturing)
        exact = {(layer.tower, layer.number) for layer in planned.plan.layers if layer.exact}
        # Numbers of inputs in the plan are those of this batch, and mean nothing in the next.
        return replace(planned.plan, cut=(), towers=towers(planned.trial, exact))


@dataclass(frozen=True)
class StreamedBatch:
    """What a model did on one batch."""

    contents: "Contents"
    plan: "CapturePlan"
    inputs: int

    @property
    def heads(self) -> list[str]:
        """Name the heads, in the order of all arrays here."""
        several = len(self.plan.towers) > 1
        return [
            str(Head(tower.name if several else "", layer.layer, head))
            for tower, layer in self._layers()
            for head in range(layer.heads)
        ]

    def tokens(self) -> list[list[str]]:
        """List the tokens of each input, of all its streams."""
        table = self.contents.tables["tokens"].select(["input", "text"]).to_pandas()
        by_input = dict(iter(table.groupby("input")["text"]))
        return [list(by_input[number]) for number in range(self.inputs)]

    def scores(self, names: list[str]) -> dict[str, Array]:
        """Measure every head on every input; returns (inputs, heads) a measure, NaN: no answer."""
        from attention_atlas.studies.capture import measure_contents

        measured = measure_contents(self.contents, self.plan)
        shape = self.inputs, len(self.heads)
        columns = {name: np.full(shape, np.nan, np.float32) for name in names}
        first = 0
        for tower, layer in self._layers():
            stem, place = f"{tower.name}.L{layer.layer}", slice(first, first + layer.heads)
            first += layer.heads
            for number, name in enumerate(measured.facts.get("measures", {}).get(stem, [])):
                if name in columns:
                    values = np.asarray(measured.arrays[f"{stem}.scores"])[:, number]
                    columns[name][np.asarray(measured.arrays[f"{stem}.inputs"]), place] = values
        return columns

    def vectors(self, what: str) -> dict[str, list[Array]]:
        """Get the vectors of each layer, (H or G, tokens, width) an input."""
        side = 2 if what != "query" else 1  # of the rows of blocks: input, queries, keys, …
        found = {}
        for tower, layer in self._layers():
            stem = f"{tower.name}.L{layer.layer}"
            joined = np.asarray(self.contents.arrays[f"{stem}.{what}"])
            blocks = np.asarray(self.contents.arrays[f"{stem}.blocks"])
            counts = np.zeros(self.inputs, np.int64)
            np.add.at(counts, blocks[:, 0], blocks[:, side])
            found[stem] = np.split(joined, np.cumsum(counts)[:-1], axis=1)
        return found

    def _layers(self) -> "Iterator[tuple[Tower, Layer]]":
        return ((tower, layer) for tower in self.plan.towers for layer in tower.layers)
