"""How does an interrupted measuring resume?

Each measured shard becomes a part of a journal beside scores.parquet, which is deleted once
the scores are written. A folder that cannot be written to has no journal.
"""

from importlib.metadata import version

from attention_atlas.measure.shards import Meter
from attention_atlas.store.parts import Journal
from attention_atlas.store.scores import belongs_to, file_names


def open_journal(meter: Meter, again: bool) -> Journal:
    """Open the journal of what is measured here, or an empty one to measure all of it again.

    Another capture, seed or measure has another journal.
    """
    asked = {
        "atlas": belongs_to(meter.atlas.manifest), "seed": meter.seed,
        "rows": meter.machine.rows, "without_sinks": meter.without_sinks,
        "measures": [measure.name for layer in meter.layers for measure in layer.measures],
        "version": version("attention-atlas"),
    }  # fmt: skip
    path = meter.atlas.path / file_names(meter.without_sinks)[0]
    if again:
        Journal.beside(path, asked).sweep()
    return Journal.beside(path, asked)
