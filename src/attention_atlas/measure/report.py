"""What is known of every head? A page to read and to print.

Plain HTML without scripts: statistics, kinds, one picture (layers × heads) a score, heads worth a
look, and the table of all heads. A browser makes a PDF of it.
"""

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from attention_atlas.measure.anomalies import anomalies, worth_a_look
from attention_atlas.measure.importance import importance_table
from attention_atlas.measure.kinds import KIND_COLOURS
from attention_atlas.measure.relations import best_heads
from attention_atlas.names.errors import InputError
from attention_atlas.store.files import write_whole
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores

_CELL = 16
_NO_SINKS = (
    " All weights are without the sinks of each input; what is left of a row is scaled to sum to "
    "one."
)
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; color: #1b1d21;
  background: #fcfcfd; padding: 0 1rem }
table { border-collapse: collapse; font-size: 12px; margin: .5rem 0 1.5rem }
td, th { padding: 2px 8px; text-align: right; border-bottom: 1px solid #e3e4e8 }
td:first-child, th:first-child { text-align: left }
figure { display: inline-block; margin: 0 1.5rem 1rem 0; break-inside: avoid }
figcaption { font-size: 12px; max-width: 20rem } small { color: #5b5f66 }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em }
.wide { overflow-x: auto }
@media print {
  body { max-width: none; margin: 0; padding: 0; background: none }
  table { break-inside: auto }
  .wide { overflow: visible }
  .wide table { font-size: 6.5px; width: 100% }
  .wide td, .wide th { padding: 1px 2px }
  .wide th { overflow-wrap: anywhere }
}
"""


def write_report(atlas: StoredAtlas, path: Path, without_sinks: bool = False) -> None:
    """Write the report of a measured atlas to a file; without the sinks of each input if asked."""
    scores = atlas.scores(without_sinks)
    if scores is None:
        how, option = (" without sinks", " --without-sinks") if without_sinks else ("", "")
        raise InputError(
            f"{atlas.path.name} is not measured{how}; run: attention-atlas measure "
            f"{atlas.path.name}{option}"
        )
    page = report(atlas, scores, without_sinks)
    write_whole(path, lambda part: _write(part, page))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def report(atlas: StoredAtlas, scores: Scores, without_sinks: bool = False) -> str:
    """Make the report of an atlas; returns its HTML."""
    model, left_out = escape(atlas.manifest.model), _NO_SINKS if without_sinks else ""
    parts = [
        f"<h1>The heads of {model}</h1>",
        f"<p>{atlas.manifest.inputs} inputs, {atlas.manifest.tokens} tokens.{left_out}</p>",
        "<h2>Importance</h2><p>The largest weight of each head, as in the study's Table 1; RI is "
        "its standard deviation over heads. A causal model's first row sees one key, so the second "
        "table leaves rows without a choice out.</p>",
        _table(importance_table(scores), "all rows"),
        _table(importance_table(scores, "importance-chosen"), "rows with a choice"),
        "<h2>Kinds</h2>", _kinds(atlas, scores),
        "<h2>Scores</h2>", *(_picture(atlas, scores, name) for name in scores.measures),
        *_relations(atlas),
        "<h2>Worth a look</h2>", _odd(scores),
        "<h2>All heads</h2>", _all(scores),
    ]  # fmt: skip
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>The heads of {model}</title>'
        f"<style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def _table(frame: pd.DataFrame, caption: str) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in ("", *frame.columns))
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td>"
        + "".join(f"<td>{value:.6g}</td>" for value in row)
        + "</tr>"
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>"


def _grid(atlas: StoredAtlas, colours: dict[str, str], titles: dict[str, str]) -> str:
    """Draw a square a head, layers down and heads across, towers below each other; returns SVG."""
    squares, top, wide = [], 0, 0
    for tower in atlas.towers:
        prefix = f"{tower.name}." if len(atlas.towers) > 1 else ""
        for layer in tower.layers:
            for head in range(layer.heads):
                name = f"{prefix}L{layer.layer}H{head}"
                squares.append(
                    f'<rect x="{head * _CELL}" y="{top}" width="{_CELL - 1}" height="{_CELL - 1}" '
                    f'fill="{colours.get(name, "none")}"><title>{escape(titles.get(name, name))}'
                    "</title></rect>"
                )
            wide = max(wide, layer.heads * _CELL)
            top += _CELL
        top += _CELL // 2
    return f'<svg width="{wide}" height="{top}" role="img">{"".join(squares)}</svg>'


def _kinds(atlas: StoredAtlas, scores: Scores) -> str:
    rows = scores.kinds
    colours = {
        head: KIND_COLOURS[kind] for head, kind in zip(rows["head"], rows["kind"], strict=True)
    }
    titles = {
        head: f"{head}: {kind}, margin {margin:.2f}"
        for head, kind, margin in zip(rows["head"], rows["kind"], rows["margin"], strict=True)
    }
    counts = rows["kind"].value_counts()
    key = "".join(
        f'<span class="key" style="background:{colour}"></span>{escape(kind)} '
        f"{int(counts.get(kind, 0))}"
        for kind, colour in KIND_COLOURS.items()
    )
    return f"<figure>{_grid(atlas, colours, titles)}<figcaption>{key}</figcaption></figure>"


def _picture(atlas: StoredAtlas, scores: Scores, measure: str) -> str:
    rows = scores.table[scores.table["measure"] == measure]
    if not len(rows):
        return ""
    values = rows["value"].to_numpy()
    low, high = float(np.min(values)), float(np.max(values))
    shades = (values - low) / (high - low) if high > low else np.zeros(len(values))
    colours = {head: _shade(shade) for head, shade in zip(rows["head"], shades, strict=True)}
    titles = {head: f"{head}: {v:.4g}" for head, v in zip(rows["head"], values, strict=True)}
    words = scores.measures[measure]
    return (
        f"<figure>{_grid(atlas, colours, titles)}<figcaption><b>{escape(words['title'])}</b> "
        f"{low:.3g} (light) to {high:.3g} (dark)<br><small>{escape(words['formula'])}</small>"
        "</figcaption></figure>"
    )


def _shade(share: float) -> str:
    light, dark = np.array([240, 244, 248]), np.array([10, 60, 110])
    red, green, blue = (int(c) for c in light + (dark - light) * share)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _odd(scores: Scores) -> str:
    unusual = anomalies(scores)
    sentences = {anomaly.head: anomaly.sentence for anomaly in unusual}
    rows = worth_a_look(scores, unusual).head(12)
    items = "".join(
        f"<li><b>{escape(str(head))}</b> {escape(sentences.get(str(head), f'unusual {by}'))}</li>"
        for head, by in zip(rows["head"], rows["by"], strict=True)
    )
    return f"<ol>{items}</ol>"


def _relations(atlas: StoredAtlas) -> list[str]:
    """List the best head of each relation, where trees were given; returns HTML."""
    table = atlas.relations()
    if table is None:
        return []
    best = best_heads(table).rename(columns={"way": "looks"})
    rows = "".join(
        f"<tr><td>{escape(str(row['relation']))}</td><td>{escape(str(row['looks']))}</td>"
        f"<td>{escape(str(row['head']))}</td><td>{row['right']:.3f}</td><td>{row['low']:.3f} … "
        f"{row['high']:.3f}</td><td>{row['baseline']:.3f} ({row['offset']:+d})</td>"
        f"<td>{row['words']}</td></tr>"
        for row in best.to_dict("records")
    )
    names = ("relation", "looks", "head", "right", "95 % interval", "best offset", "words")
    return [
        "<h2>Relations</h2><p>The head that follows each relation of the trees given furthest "
        "above the best fixed offset; up: to the word it depends on, down: from there.</p>"
        f"<table><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>{rows}</table>"
    ]


def _all(scores: Scores) -> str:
    names = list(scores.measures)
    values = scores.table.pivot(index="head", columns="measure", values="value")
    head = "".join(f"<th>{escape(name)}</th>" for name in ("head", "kind", "agree", *names))
    rows = []
    for head_name, kind, agree in zip(
        scores.kinds["head"], scores.kinds["kind"], scores.kinds["agree"], strict=True
    ):
        cells = [
            f"<td>{values.loc[head_name, name]:.3f}</td>" if name in values else "<td></td>"
            for name in names
        ]
        rows.append(
            f"<tr><td>{escape(str(head_name))}</td><td>{escape(str(kind))}</td>"
            f"<td>{agree:.0%}</td>{''.join(cells)}</tr>"
        )
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
