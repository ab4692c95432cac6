"""How does a model run inside a person's own Ray Data pipeline, or an atlas on a Ray cluster?

    scores = dataset.map_batches(
        aa.ray.Capture, fn_constructor_kwargs={"model": "gpt2"}, num_gpus=1, concurrency=(1, 8)
    )
    aa.capture("gpt2", texts, path="x.atlas", engine=aa.ray.Cluster("auto", workers=8))

Nothing here imports Ray: it calls `Capture` as any callable, and `Cluster` imports it when it runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.engine.cluster import Cluster
from attention_atlas.names.errors import InputError

__all__ = ["Capture", "Cluster"]

Column = npt.NDArray[Any]
VECTORS = ("query", "key", "value")


class Capture:
    """Runs a model over a column of texts; one object a worker loads the model once.

    A batch keeps its columns and gets, a row an input:

        heads            their names, in the order of the scores
        tokens           the tokens of the text
        score.MEASURE    (heads,) float32, NaN where there is no answer; one column a measure
        query.TOWER.L0   (heads, tokens, width), one column a layer; also key and value (groups)
    """

    def __init__(
        self,
        model: str,
        tokenizer: str | None = None,
        *,
        column: str = "text",
        second_column: str | None = None,
        scores: bool | Sequence[str] = True,
        vectors: Sequence[str] = (),
        batch_size: int = 8,
        truncate: bool = False,
        seed: int = 0,
        **loading: Any,
    ):
        """Load the model.

        scores   all measures, or the names of some; False: none
        vectors  which of query, key and value to return
        loading  fields of `Loading`: device, dtype, revision …
        """
        from attention_atlas.models.load import load
        from attention_atlas.models.loading import Loading
        from attention_atlas.record.write.options import Capturing
        from attention_atlas.studies.streamed import StreamedModel

        self.columns = [column] if second_column is None else [column, second_column]
        self.measures = _measures(scores)
        self.vectors = _vectors(vectors)
        capturing = Capturing(batch_size=batch_size, truncate=truncate, seed=seed)
        capturing.check()
        self.stream = StreamedModel(load(model, tokenizer, **vars(Loading(**loading))), capturing)

    def __call__(self, batch: Mapping[str, Column]) -> dict[str, Column]:
        """Run the model over one batch of rows; returns the batch with more columns."""
        from attention_atlas.models.inputs import read_inputs

        missing = [name for name in self.columns if name not in batch]
        if missing:
            raise InputError(
                f"the dataset has no column {missing[0]!r}; it has {', '.join(batch)}; "
                "name the column of the texts with column="
            )
        rows = zip(*(batch[name] for name in self.columns), strict=True)
        inputs = [
            read_inputs(dict(zip(("text", "second"), map(str, row), strict=False)))[0]
            for row in rows
        ]
        run = self.stream.run(inputs)
        columns = dict(batch)
        columns["heads"] = _ragged([list(run.heads)] * len(inputs))
        columns["tokens"] = _ragged(run.tokens())
        if self.measures:
            for name, values in run.scores(self.measures).items():
                columns[f"score.{name}"] = values
        for what in self.vectors:
            for stem, by_input in run.vectors(what).items():
                columns[f"{what}.{stem}"] = _ragged(by_input)
        return columns


def _measures(asked: bool | Sequence[str]) -> list[str]:
    """Return the names of measures; those of pictures have no answer on texts."""
    from attention_atlas.measure.measures import MEASURES

    if asked is False:
        return []
    known = [name for name, one in MEASURES.items() if one.needs not in ("patches", "mixed")]
    wanted = known if asked is True else list(asked)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise InputError(f"no measure is named {unknown[0]!r}; there are: {', '.join(known)}")
    return wanted


def _vectors(asked: Sequence[str]) -> tuple[str, ...]:
    unknown = [what for what in asked if what not in VECTORS]
    if unknown:
        raise InputError(f"no vectors are named {unknown[0]!r}; there are: {', '.join(VECTORS)}")
    return tuple(asked)


def _ragged(values: Sequence[Any]) -> Column:
    """Return a column whose rows may differ in shape."""
    column = np.empty(len(values), object)
    for place, value in enumerate(values):
        column[place] = value
    return column
