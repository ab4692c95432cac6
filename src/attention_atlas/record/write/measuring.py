"""How are heads measured while their model is captured, where vectors are not kept?

Measuring reads an atlas, so its code stands after this folder. A capture is given an object that
knows how; the scores of each shard are kept in a journal until the atlas is finished.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.reader import StoredAtlas

_JOURNAL = "capture-scores.parts"


@dataclass(frozen=True)
class MeasuredShard:
    """What a shard keeps, and the scores of all its inputs."""

    contents: Contents
    scores: Contents


class Measuring(Protocol):
    """An object that measures shards while they are captured."""

    @property
    def work(self) -> str:
        """Return "module:function" of a job that returns a MeasuredShard."""

    def finish(self, atlas: StoredAtlas, scores: Journal) -> None:
        """Write the scores of an atlas from those of its shards."""


def scores_journal(folder: Path) -> Journal:
    """Open the journal of the scores of a capture."""
    return Journal(folder / _JOURNAL)
