"""What does every command say to damaged atlases, odd values and files that are not what they seem?

It may succeed (0), say what is wrong in one line (2, or 1 and 3 as a verdict), but never end in a
traceback.
"""

import contextlib
import io
import os
import sys
from collections import Counter
from pathlib import Path

from attention_atlas.cli import app
from tests.fuzz.use import HUNG, OTHER, REFUSED, TooLong, time_limit

DONE = "done"
TEXTS = {
    "wide.csv": "text,year\nA cat sat.,1900,a dog\nA bird, flew,1901\n",
    "huge.jsonl": '{"text": "A cat sat.", "n": 123456789012345678901234567890}\n',
    "digits.jsonl": '{"text": "A cat sat.", "n": ' + "9" * 5000 + "}\n",
    "half.jsonl": '{"text": "A \\ud800 cat."}\n',
    "deep.jsonl": "[" * 100_000 + "\n",
    "zero.txt": "A cat\0sat.\n",
    "empty.csv": "",
    "no.conllu": "no trees\n",
    "not.json": "{",
}


def cases(atlas: Path, work: Path) -> list[tuple[str, ...]]:
    """Command lines that are all wrong in one way."""
    for name, text in TEXTS.items():
        (work / name).write_text(text)
    (work / "file").write_text("in the way")
    (work / "latin.txt").write_bytes(b"caf\xe9\n")
    os.mkfifo(work / "pipe.txt")
    new, long = str(work / "new.atlas"), str(work / ("n" * 300))
    folders = [str(atlas), str(work), str(work / "file"), str(work / "nothing"), long, "/dev/null"]
    capture = ("capture", "builtin:gpt")
    lines: list[tuple[str, ...]] = [
        (*capture, str(work / name), "-o", new) for name in (*TEXTS, "latin.txt", "pipe.txt")
    ]
    lines += [(*capture, "A cat.", "-o", target) for target in (str(work / "file"), long)]
    lines += [
        (*capture, "A cat.", "-o", new, *more)
        for more in (
            ("--generate", "100000"), ("--seed", "-1"), ("--seed", "9" * 30), ("--device", "nope"),
            ("--dtype", "nope"), ("--vectors", "some"), ("--batch-size", "0"), ("--column", "x"),
            ("--bits", "3"), ("--adapter", "nope"),
        )
    ]  # fmt: skip
    lines += [(*capture, "A \udcff cat.", "-o", new), ("capture", "nope/nope", "A", "-o", new)]
    for folder in folders:
        lines += [("heads", folder), ("measure", folder), ("export", folder, str(work / "p.html"))]
        lines += [("report", folder, str(work / "r.html")), ("compare", folder, folder)]
        lines += [("label", folder, "--model", "nope"), ("causal", folder, "--model", "nope")]
        lines += [("layout", folder, "--method", "pca", "--device", "nope")]
    for target in (str(work), str(work / "file" / "x.html"), long + ".html", "/proc/x.html"):
        lines += [("export", str(atlas), target), ("report", str(atlas), target)]
    lines += [
        ("heads", str(atlas), "--sort", "x"), ("heads", str(atlas), "--head", "L9H9"),
        ("heads", str(atlas), "--head", "L" + "9" * 5000 + "H0"),
        ("heads", str(atlas), "--relations"), ("measure", str(atlas), "--seed", "-5"),
        ("measure", str(atlas), "--conllu", str(work / "no.conllu")),
        ("measure", str(atlas), "--conllu", str(work)), ("measure", str(atlas), "--model", "nope"),
        ("layout", str(atlas), "--method", "x"), ("layout", str(atlas), "--seed", "9" * 30),
        ("layout", str(atlas), "--joint", "x"), ("layout", str(atlas), "--device", "cuda:99"),
        ("probes", "hue", "-o", str(work / "file")), ("probes", "hue", "-o", long),
        ("probes", "hue", "-o", new, "--size", "1000000"),
        ("probes", "hue", "-o", new, "--size", "1"),
        ("test", str(work / "not.json"), "builtin:gpt"), ("test", str(work), "builtin:gpt"),
        ("test", "bias", "nope"), ("check", "nope"), ("check", "builtin:nope"),
        ("view", "builtin:gpt", "", "--save", str(work / "v.html")),
        ("view", "builtin:gpt", "A cat.", "--save", str(work / "v.odd")),
        ("build", "builtin:gpt", "A cat.", "-o", str(work / "file")),
        ("serve", str(work / "nothing")), ("nonsense",), ("heads",),
    ]  # fmt: skip
    return lines


def run_commands(lines: list[tuple[str, ...]]) -> tuple[dict[str, Counter[str]], list[str]]:
    """Run command lines in this process; return the outcomes by command, and the defects."""
    counts: dict[str, Counter[str]] = {}
    defects: list[str] = []
    for line in lines:
        result, what = _run(line)
        counts.setdefault(line[0], Counter())[result] += 1
        if result in (OTHER, HUNG):
            defects.append(f"{' '.join(ascii(word)[1:60] for word in line)}: {what}")
    return counts, defects


def _run(line: tuple[str, ...]) -> tuple[str, str]:
    before, sys.argv = sys.argv, ["attention-atlas", *line]
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            time_limit(),
        ):
            app.main()
    except SystemExit as end:
        return (DONE if end.code in (0, None) else REFUSED), ""
    except TooLong:
        return HUNG, ""
    except Exception as problem:
        return OTHER, repr(problem)[:200]
    finally:
        sys.argv = before
    return DONE, ""
