"""How do the heads of builtin:vit do on every probe? Writes the tables into docs/vision.md.

python -m docs.vision
"""

import tempfile
from pathlib import Path

import attention_atlas as aa
from attention_atlas.images.probes import PROBES, write_probes

PAGE = Path(__file__).parent / "vision.md"
START, END = "<!-- ranking -->", "<!-- end of ranking -->"
SHOWN = 5
NEAREST = ("patch-left", "patch-right", "patch-up", "patch-down", "patch-row", "patch-column",
           "patch-self", "patch-neighbour", "patch-class")  # fmt: skip


def tables() -> str:
    lines = []
    for kind in PROBES:
        with tempfile.TemporaryDirectory() as place:
            write_probes(kind, Path(place) / "pictures")
            atlas = aa.capture("builtin:vit", Path(place) / "pictures", progress=False)
            scores = atlas.measure(progress=False)
        table = scores.table
        for name in [one for one in scores.measures if one.startswith("orders-")]:
            rows = table[table["measure"] == name].sort_values("value", ascending=False)
            best = ", ".join(
                f"{row.head} {row.value:.2f} ({row.chance:.2f})"
                for row in rows.head(SHOWN).itertuples()
            )
            value = name.removeprefix("orders-")
            lines.append(f"| {kind} | {value} | {best} | {rows['value'].median():.2f} |")
        if kind == "shapes":
            shapes = table
    head = [
        "| probe | known value | best heads: score (chance) | median head |",
        "|---|---|---|---|",
    ]
    by_layer = _by_layer(shapes)
    most = [
        f"| {name} | {row.head} | {row.value:.2f} | {row.chance:.2f} |"
        for name in NEAREST
        for row in shapes[shapes["measure"] == name].nlargest(1, "value").itertuples()
    ]
    return "\n".join([
        *head, *lines, "", "On the shapes, the head with the most of each:", "",
        "| score | head | value | chance |", "|---|---|---|---|", *most, "",
        "Mean distance in patches, by layer:", "", by_layer,
    ])  # fmt: skip


def _by_layer(table: "object") -> str:
    frame = table[table["measure"] == "patch-distance"]  # type: ignore[index]
    layers = frame.groupby(frame["head"].str.extract(r"L(\d+)H", expand=False).astype(int))
    rows = [(number, part["value"].mean(), part["chance"].mean()) for number, part in layers]
    return "\n".join([
        "| layer | distance | chance |", "|---|---|---|",
        *(f"| {number} | {value:.2f} | {chance:.2f} |" for number, value, chance in rows),
    ])  # fmt: skip


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{tables()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
