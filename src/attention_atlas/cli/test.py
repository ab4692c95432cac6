"""attention-atlas test: does a claim about a model hold?"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from attention_atlas.cli.arguments import AsJson, Model
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import MOST_SEED, keywords

if TYPE_CHECKING:
    from attention_atlas.lab.saved_tests.run import ControlOutcome, Interval, Outcome

EXITS = {"holds": 0, "fails": 1, "undecided": 3}


def test(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON file, or a shipped test: bias.")
    ],
    model: Model,
    loading: Loading,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of the intervals.")] = 0,  # noqa: PT028 (no test of pytest)
    as_json: AsJson = False,  # noqa: PT028
) -> None:
    """Run a saved test with controls; exits 0 if it holds, 1 if it fails, 3 if undecided."""
    from attention_atlas.lab.saved_tests.run import run_test

    outcome = run_test(file, model, seed=seed, **keywords(loading))
    print(json.dumps(outcome.to_json(), indent=1) if as_json else _table(outcome))
    raise typer.Exit(EXITS[outcome.verdict])


def _table(outcome: "Outcome") -> str:
    (name, bound), *_ = outcome.test.expect.items()
    what = "lead of the kind" if outcome.test.label else f"change of the {outcome.test.metric}"
    lines = [
        outcome.test.question,
        f"{what}: {_said(outcome.mean)}, expected {name} {bound}, {len(outcome.table)} cases",
    ]
    if not outcome.test.label:
        lines.append(f"plain {outcome.plain:.3f}, edited {outcome.edited:.3f}")
    made = [each for each in outcome.controls if not (outcome.test.label and each.note)]
    lines += [_control(each) for each in made]
    return "\n".join([*lines, f"{outcome.test.name}: {outcome.verdict} in {outcome.model}"])


def _said(interval: "Interval") -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def _control(control: "ControlOutcome") -> str:
    if control.note:
        return f"control, {control.name}: not made, {control.note}"
    return (
        f"control, {control.name}: {_said(control.change)}; the test leads by {_said(control.lead)}"
    )
