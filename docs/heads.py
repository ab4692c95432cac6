"""Writes docs/importance.md and the pictures of docs/kinds.md: python -m docs.heads.

Real models on the study's sentence: the built-in ones, all-MiniLM-L6-v2 and SmolLM2-135M, from
where the tests have them.
"""

from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import attention_atlas as aa
from attention_atlas.measure.importance import importance_table
from attention_atlas.measure.kinds import KINDS
from tests.places import minilm, smollm2

HERE = Path(__file__).parent
SENTENCE = "Mathematics is difficult because it requires not only logic but also imagination."
STUDY = {
    "xtremedistil": (144, 0.591469, 0.224299, 0.185897, 0.430913, 0.498125, 0.799879, 0.999994),
    "bert": (144, 0.839072, 0.156224, 0.219898, 0.766107, 0.896529, 0.965649, 1.0),
    "gpt2": (144, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "roberta": (144, 0.827780, 0.167467, 0.231707, 0.742653, 0.885998, 0.955006, 1.0),
}


def models() -> dict[str, Any]:
    folder, name = smollm2().rsplit("/", 1)
    network = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    return {
        "builtin:gpt": "builtin:gpt",
        "builtin:bert": "builtin:bert",
        "MiniLM": minilm(),
        "SmolLM2": (network, AutoTokenizer.from_pretrained(folder, gguf_file=name)),
    }


def table(frame: pd.DataFrame) -> str:
    head = "| | " + " | ".join(map(str, frame.columns)) + " |"
    rows = [
        f"| {name} | " + " | ".join(cell(str(name), value) for value in row) + " |"
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return "\n".join([head, "|---" * (len(frame.columns) + 1) + "|", *rows])


def cell(row: str, value: float) -> str:
    return f"{value:.0f}" if row == "Number of heads" else f"{value:.6f}"


def picture(weights: Any, tokens: list[str], title: str) -> str:
    """A heat-map as SVG: rows look, columns are looked at."""
    size, side, paper = 14, 84, "#fff"
    cells = "".join(
        f'<rect x="{side + j * size}" y="{20 + i * size}" width="{size}" height="{size}" '
        f'fill="#0a3c6e" fill-opacity="{float(weight) ** 0.5:.3f}"/>'
        for i, row in enumerate(weights)
        for j, weight in enumerate(row)
        if weight > 0.002
    )
    words = "".join(
        f'<text x="{side - 5}" y="{20 + i * size + 11}" text-anchor="end">{escape(token)}</text>'
        for i, token in enumerate(tokens)
    )
    wide, high = side + len(tokens) * size + 4, 24 + len(tokens) * size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'font-family="sans-serif" font-size="10">'
        f'<rect width="{wide}" height="{high}" fill="{paper}"/>'
        f'<text x="{side}" y="13" font-size="12">{escape(title)}</text>{words}{cells}</svg>\n'
    )


def main() -> None:
    all_rows, chosen, counts = {}, {}, {}
    best: dict[str, tuple[float, str]] = {}
    for name, model in models().items():
        atlas = aa.capture(model, SENTENCE, progress=False)
        scores = atlas.measure(progress=False)
        all_rows[name] = importance_table(scores)["all heads"]
        chosen[name] = importance_table(scores, "importance-chosen")["all heads"]
        counts[name] = scores.kinds["kind"].value_counts().reindex(KINDS, fill_value=0)
        tokens = [str(text).strip("Ġ▁#") for text in atlas.tokens(0)["text"]]
        for row in scores.kinds.itertuples():
            clear = float(str(row.margin))
            if clear > best.get(str(row.kind), (-1.0, ""))[0]:
                title = f"{row.kind}: {name} {row.head}"
                drawn = picture(atlas.weights(0, str(row.head)), tokens, title)
                best[str(row.kind)] = (clear, drawn)
    (HERE / "kinds").mkdir(exist_ok=True)
    for kind, (_, drawn) in best.items():
        (HERE / "kinds" / f"{kind.lower()}.svg").write_text(drawn, encoding="utf-8")
    study = pd.DataFrame(STUDY, index=list(all_rows["MiniLM"].index))
    page = [
        "# Importance of heads, as in the study's Table 1",
        f"Written by `python -m docs.heads` from runs on the study's sentence: “{SENTENCE}” The "
        "importance of a head is the largest of its weights; RI is the standard deviation of that "
        "over heads (divided by n). See [kinds](kinds.md).",
        "## All rows, exactly as the study defines it", table(pd.DataFrame(all_rows)),
        "A causal model's first row sees one key, so its weight is 1 whatever the head does: "
        "importance is 1 for every head and RI is 0. That is what the study found for GPT-2; it "
        "says nothing about the model.",
        "## Without rows that see one key", table(pd.DataFrame(chosen)),
        "## Heads of each kind, on this one sentence",
        table(pd.DataFrame(counts)).replace(".000000", ""),
        "## The study's own figures, for models that are not run here", table(study),
    ]  # fmt: skip
    (HERE / "importance.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
