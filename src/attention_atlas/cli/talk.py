"""What do the commands say to a person?"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from attention_atlas.edits.prove.receipt import EditCheck, EditReceipt
    from attention_atlas.store.manifest import Receipt
    from attention_atlas.store.reader import StoredAtlas


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr)


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Turn Ctrl-C into a message and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped; to resume {output}, run the same command again")
        raise typer.Exit(130) from None


def summary(atlas: "StoredAtlas") -> str:
    """Describe an atlas in one line: how many inputs and tokens, how exact."""
    skipped = atlas.manifest.options.get("skipped") or []
    left_out = f" ({len(skipped)} left out)" if skipped else ""
    kept = atlas.manifest.kept_inputs
    vectors = "" if kept is None else f" (vectors of {len(kept)} inputs kept)"
    counts = f"{atlas.manifest.inputs} inputs{left_out}, {atlas.manifest.tokens} tokens{vectors}"
    return f"{counts}; {atlas.receipt.line}"


def receipt_table(receipt: "Receipt") -> str:
    """Format a receipt as a table; returns its lines."""
    head = f"{'layer':16} {'weights':>9} {'output':>9} {'stored':>9}  "
    rows = [
        f"{layer.tower + ' ' + str(layer.layer):16} "
        f"{layer.weights_error:9.1e} {layer.output_error:9.1e} "
        f"{'–' if layer.stored_error is None else format(layer.stored_error, '.1e'):>9}  "
        f"{'exact' if layer.exact else 'NOT EXACT: ' + layer.reason}"
        for layer in receipt.layers
    ]
    missing = [f"not seen: {name}" for name in receipt.missing]
    verdict = (
        f"exact (way: {receipt.how}, dtype: {receipt.dtype}): "
        f"worst error {receipt.worst_error:.1e}, bound {receipt.bound:.0e}"
        if receipt.exact
        else "not exact"
    )
    compared = [receipt.rows_line] if receipt.rows_line else []
    return "\n".join([head.rstrip(), *rows, *missing, *compared, verdict])


def edit_table(receipt: "EditReceipt") -> str:
    """Format an edit receipt as a table; returns its lines."""
    head = f"{'check':42} {'error':>9} {'bound':>9}"
    refused = [check for check in receipt.checks if check.refused]
    verdict = "edits are as asked for" if receipt.holds else "edits are NOT as asked for"
    if refused:
        verdict += f" ({len(refused)} checks refused)"
    rows = [_edit_row(check) for check in receipt.checks]
    return "\n".join([head, *rows, f"{verdict} (way: {receipt.how})"])


def _edit_row(check: "EditCheck") -> str:
    if check.error is None or check.bound is None:
        return f"{check.name:42} {'–':>9} {'–':>9}  refused: {check.refused}"
    found = "holds" if check.holds else "DOES NOT HOLD"
    note = f", {check.note}" if check.note else ""
    error, bound = (f"{number:.1e}" if number else "0" for number in (check.error, check.bound))
    return f"{check.name:42} {error:>9} {bound:>9}  {found}{note}"
