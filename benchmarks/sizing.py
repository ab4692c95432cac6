"""How many bytes and how much time do models and corpora of any size take?

    python -m benchmarks.sizing        writes the tables into docs/cluster.md

Everything follows from the shapes of models and from rates that were measured, read from the other
pages of this folder: rows of `real_size.md` (SmolLM2 on two cores, the 7-billion shape on an H200),
`layout.md` and `results/attention-cuda.json`. A capture takes a plain pass, and on top of it a time
that grows with the bytes it keeps, or with the weights it measures.
"""

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "cluster.md"
BEGIN, END = "<!-- made by benchmarks/sizing.py -->", "<!-- end -->"
LENGTH = 1_000  # tokens of an input
SAMPLE = 20_000  # tokens whose vectors are kept, with vectors="sample:20000"
TABLE_BYTES = 12  # of a token in the two tables; 12.8 on the 210 sentences of the demo
MAP_POINTS = 10_000  # queries and keys of a map's sample
CPU_UMAP = 1.62  # seconds a head of 10,000 points on one core: layout.md, Growth
H200_MEMORY = 139 * 2**30
PLAIN, ATLAS, WRITING, CAPTURE, NONE = range(1, 6)  # columns of real_size.md


@dataclass(frozen=True)
class Shape:
    """A model: L layers, H heads, G groups, D width."""

    name: str
    parameters: float
    layers: int
    heads: int
    groups: int
    width: int

    @property
    def all_heads(self) -> int:
        return self.layers * self.heads

    @property
    def vector_bytes(self) -> int:
        """Bytes of a token: query, key and value in fp16, the log-sum-exp in fp32."""
        floats = (self.heads + 2 * self.groups) * self.width
        return self.layers * (2 * floats + 4 * self.heads)

    def operations(self, tokens: float, length: int) -> float:
        """Operations of a plain pass: two a parameter, and the products of causal attention."""
        attention = 2 * self.layers * self.heads * self.width * length
        return tokens * (2 * self.parameters + attention)

    @property
    def gpus(self) -> int:
        """GPUs of a worker: weights in bfloat16, and a seventh for what passes through."""
        return math.ceil(2 * self.parameters * 8 / 7 / H200_MEMORY)


SMOLLM2 = Shape("SmolLM2, 135 M", 134.5e6, 30, 9, 3, 64)
LLAMA7 = Shape("Llama shape, 7 B", 6.74e9, 32, 32, 32, 128)
SHAPES = (
    Shape("GPT-2, 124 M", 124.4e6, 12, 12, 12, 64),
    SMOLLM2,
    Shape("Llama 3 shape, 8 B", 8.03e9, 32, 32, 8, 128),
    Shape("Llama 3 shape, 70 B", 70.6e9, 80, 64, 8, 128),
)
TOKENS = (1e6, 1e8, 1e9)


@dataclass(frozen=True)
class Rates:
    """What one worker does in a second, and where that comes from."""

    worker: str
    operations: float  # of a plain pass
    kept: float  # bytes of vectors that a capture keeps, in the time it takes longer than that
    weight: float | None  # seconds to measure one weight; None: not measured
    umap: float  # seconds a head of 10,000 points
    source: str

    def passes(self, shape: Shape, tokens: float) -> float:
        """Return the seconds of a capture that keeps all vectors."""
        plain = shape.operations(tokens, LENGTH) / self.operations
        return plain + tokens * shape.vector_bytes / self.kept

    def measured(self, shape: Shape, tokens: float) -> float | None:
        """Return the seconds of a capture that measures every input and keeps a sample."""
        if self.weight is None:
            return None
        plain = shape.operations(tokens, LENGTH) / self.operations
        return plain + self.weight * tokens * LENGTH * shape.all_heads


def writing_rate() -> float:
    """Work out the bytes a second that one process writes, from the longest row."""
    return read("smollm2-8192", ATLAS) * 2**20 / read("smollm2-8192", WRITING)


def read(job: str, column: int) -> float:
    """Return a number of a job in real_size.md, of its first row that has one; NaN if none has.

    The first cell of a row is the job, after a comma there may be notes; the first number of a
    cell counts.
    """
    for line in (HERE / "real_size.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0].partition(",")[0] == job:
            match = re.match(r"\d+(,\d{3})*(\.\d+)?", cells[column])
            if match:
                return float(match[0].replace(",", ""))
    return math.nan


def rates_from(job: str, shape: Shape, tokens: int, texts: int) -> Rates:
    """Work out the rates of a machine from a job of real_size.md."""
    plain, atlas, capture, none = (read(job, column) for column in (PLAIN, ATLAS, CAPTURE, NONE))
    weights = texts * tokens**2 * shape.all_heads
    return Rates(
        "", shape.operations(texts * tokens, tokens) / plain, atlas * 2**20 / (capture - plain),
        None if math.isnan(none) else (none - plain) / weights, 0.0, f"real_size.md, {job}",
    )  # fmt: skip


def two_cores() -> Rates:
    found = rates_from("smollm2-991", SMOLLM2, 991, 1)
    return replace(found, worker="two CPU cores", umap=CPU_UMAP / 2)


def one_h200() -> Rates:
    rounds = json.loads((HERE / "results" / "attention-cuda.json").read_text())
    best = min(one["ties"] + one["umap-2d"] for one in rounds if one["joint"] == "attention")
    found = rates_from("llama-7b", LLAMA7, 560, 16)
    return replace(found, worker="one H200", umap=best / 144)


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "not measured"
    for unit, length in (("years", 3.156e7), ("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def tables() -> str:
    """Make the text between the marks of docs/cluster.md."""
    machines, writing = (two_cores(), one_h200()), writing_rate()
    lines = ["Bytes follow from the shape: fp16 query, key and value, fp32 log-sum-exp; "
             f"{TABLE_BYTES} bytes a token of tables. One process writes {size(writing)} a second "
             "(real_size.md, smollm2-8192).", "",
             "| model | heads | a token | tokens | `--vectors all` | one process writes it in | "
             "`sample:20000` | `none` |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for shape in SHAPES:
        for tokens in TOKENS:
            table, each = TABLE_BYTES * tokens, shape.vector_bytes
            cells = (
                shape.name, f"{shape.all_heads:,}", size(each), f"{tokens:.0e}".replace("e+0", "e"),
                size(each * tokens + table), duration(each * tokens / writing),
                size(each * min(tokens, SAMPLE) + table), size(table),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    for rates in machines:
        lines += ["", *_times(rates)]
    return "\n".join(lines)


def _times(rates: Rates) -> list[str]:
    weight = "" if rates.weight is None else f", {rates.weight * 1e9:.2g} ns a weight measured"
    lines = [
        f"Time of one worker with {rates.worker}, inputs of {LENGTH:,} tokens; divide it by the "
        f"number of workers. Rates: {rates.operations:.2g} operations a second in a plain pass, "
        f"then {size(rates.kept)} of vectors a second{weight} ({rates.source}); UMAP of "
        f"10,000 points {rates.umap:.2g} s a head.", "",
        "| model | tokens | capture, all vectors | capture and measure all, keep a sample | UMAP |",
        "|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    on_gpu = "H200" in rates.worker
    for shape in SHAPES:
        share = shape.gpus if on_gpu else 1
        name = f"{shape.name} ({share} GPUs a worker)" if share > 1 else shape.name
        for tokens in TOKENS:
            cells = (
                name, f"{tokens:.0e}".replace("e+0", "e"),
                duration(rates.passes(shape, tokens)), duration(rates.measured(shape, tokens)),
                duration(rates.umap * shape.all_heads),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
