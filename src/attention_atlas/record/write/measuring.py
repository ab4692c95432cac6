"""How are heads measured while their model is captured, where vectors are not kept?

Measuring reads an atlas, so its code stands after this folder. A capture is given an object that
knows how; the scores of each shard are kept in a journal until the atlas is finished.
"""

from pathlib import Path
from typing import Protocol

from attention_atlas.store.parts import Journal
from attention_atlas.store.reader import StoredAtlas

_JOURNAL = "capture-scores.parts"


class Measuring(Protocol):
    """An object that measures shards while they are captured."""

    @property
    def work(self) -> str:
        """Return "module:function" of a job that returns two parts by name.

        contents  what the shard keeps
        scores    those of all its inputs
        """

    def get_ready(self, device: str) -> None:
        """Start what takes time before the first shard on a device can be measured."""

    def finish(self, atlas: StoredAtlas, scores: Journal) -> None:
        """Write the scores of an atlas from those of its shards."""


def scores_journal(folder: Path) -> Journal:
    """Open the journal of the scores of a capture."""
    return Journal(folder / _JOURNAL)
