"""Work beside others leaves a core to them, so that its threads do not wait for each other."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import attention_atlas as aa
from attention_atlas.models import threads
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live import edit_receipt
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.lab_input import LabInput
from attention_atlas.page.live.model import LiveModel

EDIT = {"input": 0, "edits": [aa.ablate("L4H5").to_json()]}
CORES, BEFORE = 4, 8


def in_effect(library: str, of: str = "") -> set[int]:
    """How many threads the libraries of one sort would take now, as they say it themselves."""
    pools = [pool for pool in threadpool_info() if of in pool["filepath"]]
    return {pool["num_threads"] for pool in pools if pool["user_api"] == library}


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of four cores, on which torch and the matrix libraries would take eight threads."""
    monkeypatch.setattr(threads, "cores", lambda: CORES)
    before = torch.get_num_threads()
    torch.set_num_threads(BEFORE)
    with threadpool_limits(BEFORE, "blas"):
        yield
    torch.set_num_threads(before)


def noted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[set[int]]:
    """Note the threads in effect each time that a function is called."""
    real: Callable[..., Any] = getattr(owner, name)
    seen: list[set[int]] = []

    def note(*given: Any, **named: Any) -> Any:
        seen.append(in_effect("openmp", "torch") | {torch.get_num_threads()})
        return real(*given, **named)

    monkeypatch.setattr(owner, name, note)
    return seen


def done(answers: Answers) -> None:
    """Edit an input in a thread of the queue, as a server does."""
    ticket = answers.queue.enter("model", lambda: answers.perform("edit", EDIT))
    assert ticket.future.result(60)[1]


def test_an_edit_leaves_a_core_to_the_others_and_gives_back_what_it_took(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch, four_cores: None
) -> None:
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    during = noted(monkeypatch, LabInput, "edit")
    done(answers)
    after = answers.queue.enter("model", torch.get_num_threads).future.result(60)
    assert (during, after) == ([{CORES - 1}], BEFORE)


def test_fewer_threads_than_that_stay_as_they_are(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch, four_cores: None
) -> None:
    torch.set_num_threads(2)
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    during = noted(monkeypatch, LabInput, "edit")
    done(answers)
    assert during == [{2}]


def test_the_receipt_of_edits_leaves_a_core_too(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch, four_cores: None
) -> None:
    from attention_atlas.edits.prove import receipt

    def refuse(*_: Any, **__: Any) -> Any:
        raise aa.AtlasError("not checked here")

    monkeypatch.setattr(receipt, "edit_receipt", refuse)
    during = noted(monkeypatch, receipt, "edit_receipt")
    run = edit_receipt.ReceiptRun(gpt, LiveModel("builtin:gpt"))
    run.proofs()
    assert run._thread is not None
    run._thread.join(60)
    assert "not checked here" in run.proofs().line
    assert during == [{CORES - 1}]


def test_matrix_products_of_a_server_leave_a_core_and_get_it_back(
    gpt: aa.Atlas, stand_in: Any, four_cores: None
) -> None:
    assert in_effect("blas") == {BEFORE}
    with start([gpt], port=0):
        assert in_effect("blas") == {CORES - 1}
    assert in_effect("blas") == {BEFORE}


@pytest.mark.parametrize(("cores", "taken"), [(1, 1), (2, 1), (16, 15)])
def test_one_thread_is_always_left(cores: int, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: cores)
    assert threads.beside_others() == taken


def test_blocks_of_two_threads_that_overlap_leave_the_usual_number() -> None:
    """New threads of torch begin with what any thread has set last."""
    usual = torch.get_num_threads()
    torch.set_num_threads(BEFORE)
    try:
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two, ExitStack() as ending:
            first, second = threads.torch_threads(1), threads.torch_threads(3)
            one.submit(first.__enter__).result()
            two.submit(second.__enter__).result()
            seen = [pool.submit(torch.get_num_threads).result() for pool in (one, two)]
            one.submit(first.__exit__, None, None, None).result()
            inside = two.submit(torch.get_num_threads).result()
            two.submit(second.__exit__, None, None, None).result()
            fresh = ending.enter_context(ThreadPoolExecutor(1))
            after = [pool.submit(torch.get_num_threads).result() for pool in (one, two, fresh)]
        assert (seen, inside, after) == ([1, 3], 3, [BEFORE] * 3)
    finally:
        torch.set_num_threads(usual)


def test_a_block_inside_another_takes_no_more_than_it() -> None:
    usual = torch.get_num_threads()
    torch.set_num_threads(BEFORE)
    try:
        with threads.torch_threads(2):
            with threads.torch_threads(5):
                assert torch.get_num_threads() == 2
            with threads.torch_threads(1):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == BEFORE
    finally:
        torch.set_num_threads(usual)
