"""Are edits of the live model those that were asked for? Checked once, in the background."""

import atexit
import logging
import threading
from typing import TYPE_CHECKING

import numpy as np

from attention_atlas.models.threads import beside_others, torch_threads
from attention_atlas.names.errors import AtlasError
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.lab import EditProof, EditProofs
from attention_atlas.store.reader import StoredAtlas

if TYPE_CHECKING:
    from attention_atlas.edits.prove.receipt import EditCheck, EditReceipt

_LAST_CHECK = 30  # seconds that the end of the process waits for the check that is running
_log = logging.getLogger("attention_atlas")


class ReceiptRun:
    """The edit receipt of the live model of an atlas; the first question starts it."""

    def __init__(self, atlas: StoredAtlas, model: LiveModel):
        self.atlas, self.model = atlas, model
        self._starting, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._proofs = EditProofs("edits of this model are being checked", False, (), False)

    def proofs(self) -> EditProofs:
        """Return the receipt as far as it is made."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
                atexit.register(self._close, self._thread)
        return self._proofs

    def _close(self, thread: threading.Thread) -> None:
        """Stop before the process ends: a thread that is killed inside torch aborts all of it."""
        self._stop.set()
        thread.join(_LAST_CHECK)

    def _run(self) -> None:
        try:
            self._proofs = _told(self._receipt())
        except Exception as problem:
            if not isinstance(problem, AtlasError):
                _log.warning("edits could not be checked", exc_info=True)
            line = f"edits of this model could not be checked: {problem}"
            self._proofs = EditProofs(line, False, self._proofs.parts, True)

    def _receipt(self) -> "EditReceipt":
        from attention_atlas.edits.prove.receipt import edit_receipt
        from attention_atlas.lab.stored_input import encode_stored

        shortest = int(np.bincount(self.atlas.tokens()["input"]).argmin())
        with self.model.held() as loaded:
            item = encode_stored(self.atlas, shortest, loaded)
        with torch_threads(beside_others()):
            return edit_receipt(loaded, [item], watch=self._note)

    def _note(self, check: "EditCheck", total: int) -> None:
        if self._stop.is_set():
            raise SystemExit  # ends this thread alone, silently
        parts = (*self._proofs.parts, _proof(check))
        line = f"edits of this model are being checked: {len(parts)} of {total}"
        self._proofs = EditProofs(line, False, parts, False)


def _told(receipt: "EditReceipt") -> EditProofs:
    refused = sum(bool(check.refused) for check in receipt.checks)
    line = "edits are as asked for" if receipt.holds else "edits are NOT as asked for"
    line += f" ({len(receipt.checks) - refused} checks"
    line += f", {refused} cannot be made in this model)" if refused else ")"
    return EditProofs(line, receipt.holds, [_proof(check) for check in receipt.checks], True)


def _proof(check: "EditCheck") -> EditProof:
    if check.error is None or check.bound is None:
        return EditProof(check.name, f"cannot be made in this model: {check.refused}", None)
    found = "holds" if check.holds else "does NOT hold"
    note = f", {check.note}" if check.note else ""
    sentence = f"{found}: error {check.error:.1e}, at most {check.bound:.1e}{note}"
    return EditProof(check.name, sentence, check.holds)
