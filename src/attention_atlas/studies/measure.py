"""How is an atlas measured and labelled with a live model or a file besides its own folder?"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_atlas.names.errors import StoreError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.relations import forget_relations, write_relations
from attention_atlas.store.scores import Scores

_log = logging.getLogger("attention_atlas")

if TYPE_CHECKING:
    import pandas as pd

    from attention_atlas.engine.job import Engine
    from attention_atlas.measure.run import Extra, Ready
    from attention_atlas.models.load import Loaded


def measure(
    atlas: StoredAtlas | str | Path,
    model: Any = None,
    tokenizer: Any = None,
    *,
    conllu: str | Path | None = None,
    gradients: bool = True,
    all_rows: bool = False,
    without_sinks: bool = False,
    seed: int = 0,
    again: bool = False,
    progress: bool = True,
    engine: "str | Engine" = "local",
    **loading: Any,
) -> Scores:
    """Measure every head, keep the scores in the atlas and return them.

    model    adds induction and duplicate scores on repeated random tokens, gradient importance,
             retrieval of needles, copying and composition of the weights, rank and likeness of
             outputs; `loading` takes the fields of `Loading`
    all_rows measures every row of long inputs too, of which some thousand are drawn otherwise
    conllu   adds agreement with the trees of a CoNLL-U file whose sentences are the inputs, overall
             and by relation (`atlas.relations()`)
    without_sinks  measures weights without the sinks of each input as well, in a pass of its own,
             and returns those scores
    engine   where shards are measured: "local", "ray", or an engine as in docs/cluster.md; what
             needs a model runs here
    """
    from attention_atlas.engine.engines import find_engine
    from attention_atlas.measure.read_blocks import find_machine
    from attention_atlas.measure.run import measure_atlas

    opened = atlas if isinstance(atlas, StoredAtlas) else StoredAtlas.open(atlas)
    extras: list[Extra | Ready] = []
    if again:
        forget_relations(opened.path)
        opened.hold_relations(None)
    if conllu is not None:
        from attention_atlas.measure.syntax import syntax

        agreement, relations = syntax(opened, conllu, seed)
        _keep_relations(opened, relations)
        extras.append(agreement)
    if model is not None:
        from attention_atlas.models.load import load

        loaded = load(model, tokenizer, **loading)
        refuse_another(opened, loaded)
        extras += _repeats(opened, loaded, seed)
        if gradients:
            extras.append(_gradients(opened, loaded, seed))
    if model is not None:
        from attention_atlas.studies.circuits import circuit_scores, output_scores, retrieval_score

        extras += [*output_scores(opened, seed), *circuit_scores(opened, loaded, seed)]
        needles = retrieval_score(opened, loaded, seed)
        extras += [] if needles is None else [needles]
    machine = find_machine(loading.get("device", "auto"), all_rows)
    running = find_engine(engine)
    scores = measure_atlas(
        opened, extras, seed=seed, again=again, progress=progress, machine=machine, engine=running
    )
    if not without_sinks:
        return scores
    return measure_atlas(
        opened, seed=seed, again=again, progress=progress, machine=machine, engine=running,
        without_sinks=True,
    )  # fmt: skip


def _keep_relations(atlas: StoredAtlas, relations: "pd.DataFrame") -> None:
    """Write relations into the folder, or hold them in memory where it cannot be written to."""
    try:
        write_relations(atlas.path, atlas.manifest, relations)
    except StoreError as problem:
        _log.warning("the relations of %s are not kept: %s", atlas.path, problem)
        atlas.hold_relations(relations)


def label(
    atlas: StoredAtlas | str | Path,
    model: Any,
    processor: Any = None,
    *,
    progress: bool = True,
    **loading: Any,
) -> "dict[str, int]":
    """Name what each patch shows by a segmentation model; returns name → number of patches."""
    from collections import Counter

    from attention_atlas.models.load import load
    from attention_atlas.models.media import open_image
    from attention_atlas.models.segment import names_of, segment
    from attention_atlas.names.errors import InputError
    from attention_atlas.names.progress import bar
    from attention_atlas.store.labels import write_labels
    from attention_atlas.store.patch_places import places, seated

    opened = atlas if isinstance(atlas, StoredAtlas) else StoredAtlas.open(atlas)
    tokens = opened.tokens()
    image_and_box = places(tokens)
    if image_and_box is None:
        raise InputError(f"{opened.path.name} has no pictures, so no patches to label")
    loaded = load(model, processor, **loading)
    names = names_of(loaded)
    image, box = image_and_box
    labels: list[str | None] = [None] * len(tokens)
    shares = [0.0] * len(tokens)
    inputs = tokens["input"].to_numpy()
    has_place = seated(tokens)
    with bar("labelling", len(opened), progress) as draw:
        for number in range(len(opened)):
            first, last = np.searchsorted(inputs, [number, number + 1])
            for picture in np.unique(image[first:last][image[first:last] >= 0]):
                parts = segment(loaded, open_image(opened.picture(number, int(picture))))
                for token in range(first, last):
                    if image[token] == picture and has_place[token]:
                        which, shares[token] = parts.label(box[token].astype(np.float64))
                        labels[token] = None if which < 0 else names.get(which, str(which))
            draw(number + 1)
    write_labels(opened.path, opened.manifest, labels, shares, loaded.name)
    return dict(Counter(label for label in labels if label is not None).most_common())


def refuse_another(atlas: StoredAtlas, loaded: "Loaded") -> None:
    """Refuse a model of another class than the atlas was captured from."""
    from attention_atlas.names.errors import ModelError

    given, captured = type(loaded.model).__name__, atlas.manifest.model_class
    if given != captured:
        raise ModelError(
            f"{atlas.path.name} was captured from a {captured} and {loaded.name} is a {given}; "
            f"give {atlas.manifest.model}"
        )


def _repeats(atlas: StoredAtlas, loaded: "Loaded", seed: int) -> "list[Extra]":
    from attention_atlas.measure.run import CHANCES, Extra, values_by_input
    from attention_atlas.record.write.repeats import capture_repeats

    repeats = capture_repeats(loaded, seed)
    extras = []
    for name in ("duplicate", "induction"):
        values, chance, measure = values_by_input(repeats, name, seed)
        extras.append(
            Extra(
                f"random-{name}",
                f"{measure.title}, random tokens twice",
                f"{measure.formula}; on {len(repeats)} inputs of random tokens given twice",
                measure.source,
                values,
                chance,
                CHANCES[measure.chance],
                measure.bounds,
            )
        )
    return extras


def _gradients(atlas: StoredAtlas, loaded: "Loaded", seed: int) -> "Extra":
    from attention_atlas.measure.definition import AT_LEAST_0
    from attention_atlas.measure.run import Extra
    from attention_atlas.record.watch.gradients import gradient_importance

    values = gradient_importance(atlas, loaded, seed)
    return Extra(
        "gradient", "gradient importance", "mean over inputs of |∂ loss / ∂ gate of the head|",
        "Michel et al. 2019, Are Sixteen Heads Really Better than One?", np.asarray(values),
        bounds=AT_LEAST_0,
    )  # fmt: skip
