"""How does an interrupted measuring resume?

Each measured shard becomes a part of a journal beside scores.parquet, which is deleted once
the scores are written. A folder that cannot be written to has no journal.
"""

from collections.abc import Iterator
from importlib.metadata import version

from attention_atlas.measure.shards import Meter, Partial
from attention_atlas.names.errors import StoreError
from attention_atlas.names.progress import Progress
from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.scores import SCORES, belongs_to


def open_journal(meter: Meter, again: bool) -> Journal:
    """Open the journal of what is measured here, or an empty one to measure all of it again.

    Another capture, seed or measure has another journal.
    """
    asked = {
        "atlas": belongs_to(meter.atlas.manifest), "seed": meter.seed,
        "rows": meter.machine.rows,
        "measures": [measure.name for layer in meter.layers for measure in layer.measures],
        "version": version("attention-atlas"),
    }  # fmt: skip
    path = meter.atlas.path / SCORES
    if again:
        Journal.beside(path, asked).sweep()
    return Journal.beside(path, asked)


def partials(meter: Meter, draw: Progress, journal: Journal | None = None) -> Iterator[Partial]:
    """Yield every shard, read from the journal or measured now."""
    before = 0
    for number, shard in enumerate(meter.atlas.manifest.shards):

        def done(count: int, before: int = before) -> None:
            draw(before + count)

        if journal is not None and number in journal.parts:
            yield Partial(number, journal.arrays(number))
        else:
            partial = meter.shard(number, done)
            journal = _added(journal, partial)
            yield partial
        before += shard.inputs * len(meter.layers)
        draw(before)


def _added(journal: Journal | None, partial: Partial) -> Journal | None:
    """Write a shard into the journal; returns the journal, None where it cannot be written."""
    try:
        if journal is not None:
            journal.add(partial.shard, Contents(partial.arrays))
    except StoreError:
        return None
    return journal
