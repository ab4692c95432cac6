"""What is done for a page? Maps are computed in the background, texts are added, inputs edited.

One map is computed at a time, in a thread of the queue (and in its own processes where that is
faster), so that the page stays usable; maps of other atlases wait. A stopped map keeps its finished
heads for the next run.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

from attention_atlas.layout.estimate import estimate
from attention_atlas.layout.methods import DIMS, METHODS
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.wanted import UnwantedError, stopper
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.maps import find_map, why_no_maps
from attention_atlas.page.live.in_words import in_words
from attention_atlas.page.live.lab import Lab
from attention_atlas.page.live.lane import Ticket
from attention_atlas.page.live.model import TEXTS, LiveModel
from attention_atlas.page.live.queue import Queue
from attention_atlas.page.wire.actions import Add, Added, Cancel, Compute, Place
from attention_atlas.page.wire.lab import (
    EditedInput,
    EditInput,
    EditProofs,
    LabelQuestion,
    LabelVerdict,
)
from attention_atlas.page.wire.maps import Estimate, MapProgress
from attention_atlas.page.wire.queue import Leave, Queued
from attention_atlas.store.cores import cores
from attention_atlas.store.maps import read_map
from attention_atlas.store.reader import StoredAtlas

MOST_ADDED = 200  # texts; each takes memory until the server ends
_LAST_HEAD = 10.0  # seconds that `cancel` waits for the head that is being computed
READ_ONLY = (
    "this server is read-only: it shows what is in the folder, and computes, adds and edits "
    "nothing; start it without --read-only for that"
)
_log = logging.getLogger("attention_atlas")


class Stopped(Exception):  # noqa: N818  raised to leave a run, not because something is wrong
    """Raised when the person stops a computation; what is computed is kept."""


class BackgroundWork:
    """The background work of one atlas: computing maps and adding texts."""

    def __init__(
        self,
        atlas: Grown,
        model: LiveModel | None = None,
        queue: Queue | None = None,
        read_only: bool = False,
    ):
        self.atlas, self.read_only = atlas, read_only
        self.model = None if read_only else model
        self.queue = queue or Queue()
        self.lab = Lab(atlas, self.model, READ_ONLY if read_only else "")
        self.finished: Callable[[], None] = lambda: None  # called when a map is finished
        self._ticket: Ticket | None = None
        self._began, self._first, self._stop_if_unwanted = 0.0, 0, stopper()
        self._at = MapProgress("idle")
        self._starting, self._adding = threading.Lock(), threading.Lock()

    # Maps ------------------------------------------------------------------------------------

    @property
    def can_compute(self) -> bool:
        return not self._why_not()

    def _why_not(self) -> str:
        """Say why no map can be computed; empty if one can."""
        if self.read_only:
            return READ_ONLY
        why = why_no_maps(self.atlas)
        if not why and not os.access(self.atlas.path, os.W_OK):
            return f"{self.atlas.path.name} cannot be written to, so no map can be kept there"
        return why

    @property
    def _has_texts(self) -> bool:
        return bool(self.atlas.base.inputs()["kind"].isin(TEXTS).any())

    def offers(self) -> dict[str, Any]:
        """Return the fields of `about` that say which actions are possible."""
        return {
            "read_only": self.read_only,
            "can_compute": self.can_compute,
            "no_compute": self._why_not(),
            "estimates": self.estimates(),
            "can_add": self.model is not None and self._has_texts,
            "added": tuple(range(self.atlas.manifest.inputs, len(self.atlas))),
            **self.lab.offers(),
        }

    def estimates(self) -> list[Estimate]:
        """Return the estimate of every map that can be computed; 2d and 3d cost about the same."""
        if not self.can_compute:
            return []
        return [
            Estimate(method, dims, round(estimate(self.atlas, method, cores()), 1))
            for method in METHODS
            for dims in DIMS
        ]

    def compute(self, asked: Compute) -> MapProgress:
        """Start to compute a map and return the progress."""
        with self._starting:
            self._refuse_method(asked)
            return self._start(f"{asked.method}-{asked.dims}d", "", lambda: self._lay_out(asked))

    def place(self, asked: Place) -> MapProgress:
        """Start to place all tokens of a head on a map and return the progress."""
        path = find_map(self.atlas, asked.map)
        with self._starting:
            return self._start(asked.map, asked.head, lambda: self._place(path, asked.head))

    def _start(self, name: str, head: str, work: Callable[[], object]) -> MapProgress:
        self._refuse_now()
        before, self._at = self._at, MapProgress("running", name, head=head)
        try:
            self._ticket = self.queue.enter("maps", lambda: self._run(work))
        except BaseException:
            self._at = before
            raise
        return self.progress()

    def _refuse_method(self, asked: Compute) -> None:
        if asked.method not in METHODS or asked.dims not in DIMS:
            methods = ", ".join(METHODS)
            raise PickError(
                f"no map is named {asked.method[:40]}-{asked.dims}d; there is {methods}, "
                "in 2 or 3 dimensions"
            )

    def _refuse_now(self) -> None:
        why = self._why_not()
        if why:
            raise PickError(why)
        if self._at.state == "running":
            raise PickError(f"{self._at.map} is being computed; wait for it or stop it first")

    def cancel(self, _: Cancel) -> MapProgress:
        """Stop the running computation, if any, and return the progress."""
        ticket = self._ticket
        if ticket is not None and self._at.state == "running":
            self.queue.leave(ticket)
            end = time.monotonic() + _LAST_HEAD
            while self._at.state == "running" and ticket.running and time.monotonic() < end:
                time.sleep(0.02)
            if not ticket.running:  # it waited, and will never run
                self._at = replace(self._at, state="stopped")
        return self._at

    def progress(self) -> MapProgress:
        """Return the running computation, or how many wait before it, or how the last one ended."""
        ticket, at = self._ticket, self._at
        if ticket is None or at.state != "running" or ticket.running:
            return at
        ahead = self.queue.ahead(ticket)
        return replace(at, state="waiting", ahead=ahead) if ahead else at

    def leave(self, asked: Leave) -> Queued:
        """Give up a piece of work of a page; return what is left of its work."""
        self.queue.leave_number(asked.page, asked.ticket)
        return self.queue.of_page(asked.page)

    def _run(self, work: Callable[[], object]) -> None:
        name, head = self._at.map, self._at.head
        self._began, self._first, self._stop_if_unwanted = time.monotonic(), -1, stopper()
        try:
            Context().run(work)  # it is stopped between heads, by `_watch` alone, and keeps them
        except Stopped:
            self._at = MapProgress("stopped", name, self._at.done, self._at.total, head=head)
        except Exception as problem:
            known = in_words(problem)
            if known is None:
                _log.error("%s could not be computed", head or name, exc_info=True)
            error = str(known or f"{head or name} could not be computed: {problem}")
            self._at = MapProgress("failed", name, error=error, head=head)
        else:
            self.finished()
            self._at = MapProgress("done", name, self._at.total, self._at.total, head=head)

    def _lay_out(self, asked: Compute) -> None:
        from attention_atlas.layout.device import chosen_device
        from attention_atlas.layout.plan import Options
        from attention_atlas.layout.run import layout_atlas

        options = Options(asked.method, asked.dims, device=chosen_device("auto"))
        # Open the folder again: this thread gets its own files, without added inputs.
        folder = StoredAtlas.open(self.atlas.path)
        layout_atlas(folder, options, progress=False, watch=self._watch)

    def _place(self, path: Path, head: str) -> None:
        from attention_atlas.layout.device import chosen_device
        from attention_atlas.layout.rest import HeadMap, place_head

        device = chosen_device("auto")
        head_map = HeadMap(StoredAtlas.open(self.atlas.path), read_map(path), head, device)
        place_head(head_map, path, self._watch)

    def _watch(self, done: int, total: int) -> None:
        try:
            self._stop_if_unwanted()
        except UnwantedError:
            raise Stopped from None
        self._first = done if self._first < 0 else self._first
        fresh = done - self._first
        spent = time.monotonic() - self._began
        left = round(spent / fresh * (total - done), 1) if fresh else None
        self._at = MapProgress("running", self._at.map, done, total, left, head=self._at.head)

    # Texts -----------------------------------------------------------------------------------

    def add(self, asked: Add) -> Added:
        """Let the live model read a new text; return the number of the new input."""
        if self.model is None:
            raise InputError(
                "there is no model to read new texts; start with: attention-atlas serve x.atlas "
                "--model MODEL"
            )
        began = time.monotonic()
        with self._adding:  # a model reads one text at a time
            if len(self.atlas.added) >= MOST_ADDED:
                raise InputError(
                    f"{MOST_ADDED} texts were added already, which are kept in memory; capture "
                    "more texts into an atlas, or start the server again"
                )
            number = self.atlas.add(self.model.read(self.atlas, asked.text, asked.second))
        return Added(number, round(time.monotonic() - began, 2))

    # Edits -----------------------------------------------------------------------------------

    def edit(self, asked: EditInput) -> EditedInput:
        """Let the live model read an input with edits; return what changes."""
        return self.lab.edit(asked)

    def test_label(self, asked: LabelQuestion) -> LabelVerdict:
        """Let the live model test the kind of a head on new texts; return the verdict."""
        return self.lab.test_label(asked)

    def edit_receipt(self) -> EditProofs:
        """Return whether edits of the live model are as asked for, as far as this is checked."""
        return self.lab.receipt()
