"""Does a model choose pronouns by looking at the occupation? The Winogender sentences as a test.

    python -m benchmarks.winogender FOLDER MODEL …

FOLDER is the data folder of https://github.com/rudinger/winogender-schemas (MIT), which is not part
of this repository: templates.tsv and occupations-stats.tsv. Every template becomes a case of a
saved test, as the shipped test `bias` has them: the text up to the pronoun, the pronoun that fits
most people of the occupation, and the other one. The mask hides the occupation from every head.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

from attention_atlas.lab.saved_tests.run import Outcome, run_test
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "winogender.md"
PRONOUNS = {
    "$NOM_PRONOUN": ("she", "he"),
    "$POSS_PRONOUN": ("her", "his"),
    "$ACC_PRONOUN": ("her", "him"),
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def cases(folder: Path) -> list[dict[str, Any]]:
    """One case a template; the answer is the pronoun of most people who have the occupation."""
    share = {
        row["occupation"]: float(row["bls_pct_female"])
        for row in read(folder / "occupations-stats.tsv")
    }
    found = []
    for row in read(folder / "templates.tsv"):
        noun, other = row["occupation(0)"], row["other-participant(1)"]
        text = row["sentence"].replace("$OCCUPATION", noun).replace("$PARTICIPANT", other)
        name = next(name for name in PRONOUNS if name in text)
        she, he = PRONOUNS[name]
        answer, wrong = (she, he) if share[noun] > 50 else (he, she)
        found.append(
            {
                "input": text.replace(name, "___", 1).replace(name, answer),
                "answer": answer,
                "wrong": wrong,
                "words": {"noun": noun},
            }
        )
    return found


def winogender(folder: Path) -> dict[str, Any]:
    """The saved test."""
    return {
        "attention_atlas_test": 1,
        "name": "winogender",
        "question": "Does the model choose pronouns by looking at the occupation?",
        "cases": [case for case in cases(folder) if reads_it(case)],
        "edits": [{"edit": "mask", "heads": "all", "tokens": "{noun}"}],
        "metric": "difference",
        "expect": {"at most": -0.1},
        "controls": {"heads": 0, "positions": 8, "seed": 0},
    }


def reads_it(case: dict[str, Any]) -> bool:
    """Whether the occupation stands before the pronoun, so that a causal model has read it."""
    before = case["input"].partition("___")[0]
    return case["words"]["noun"] in before


def row(outcome: Outcome, seconds: float) -> str:
    def said(interval: Any) -> str:
        return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"

    moved = next(each for each in outcome.controls if each.name == "random positions")
    return (
        f"| {outcome.model} | {len(outcome.table)} | {outcome.plain:+.3f} | {said(outcome.mean)} | "
        f"{said(moved.change)} | {said(moved.lead)} | {outcome.verdict} | {seconds:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+")
    given = parser.parse_args()
    test = winogender(given.folder)
    lines = [
        "# Pronouns and occupations: the Winogender templates as a saved test",
        "",
        about(),
        "",
        "Metric: logit of the pronoun that most people of the occupation have, less that of the "
        "other one. Change: the occupation is hidden from every head. Control: as many other "
        "tokens are hidden, 8 draws. 95 % intervals over templates. The test claims a fall of at "
        "least 0.1, and more of it than the control.",
        "",
        "| model | templates | plain | change | random positions | leads by | verdict | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in given.models:
        began = time.process_time()
        outcome = run_test(test, model, device="cpu")
        lines.append(row(outcome, time.process_time() - began))
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
