"""Heavy work waits its turn: bounded, fair between pages, and it can be given up."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

import attention_atlas as aa
from attention_atlas.layout import chunk, run
from attention_atlas.measure.run import measure_atlas
from attention_atlas.names.progress import bar
from attention_atlas.names.wanted import UnwantedError, stop_if_unwanted
from attention_atlas.page.answers import heads
from attention_atlas.page.hosts import launch
from attention_atlas.page.live import background
from attention_atlas.page.live import queue as queues
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.lab_input import LabInput
from attention_atlas.page.live.lane import BusyError, Lane, Ticket
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.live.queue import Queue
from attention_atlas.page.wire.packing import unpack
from tests import planted

ABLATE = aa.ablate("L4H5").to_json()
EDIT = {"input": 0, "edits": [ABLATE]}
PATIENCE = 60.0


def until(true: Callable[[], Any]) -> Any:
    """What becomes true within a minute."""
    end = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


class Gate:
    """Work that waits until it may end, and says in which order it was done."""

    def __init__(self) -> None:
        self.opened, self.order = threading.Event(), list[str]()

    def work(self, name: str) -> Callable[[], str]:
        def do() -> str:
            assert self.opened.wait(PATIENCE)
            self.order.append(name)
            return name

        return do


def entered(lane: Lane, gate: Gate, *names: str) -> list[Ticket]:
    """Enters pieces of work named page and number, as in a1; all but the first wait."""
    tickets = []
    for number, name in enumerate(names):
        tickets.append(Ticket(number, "", name[0], gate.work(name)))
        lane.enter(tickets[-1])
        until(lambda: lane.running)
    return tickets


# Lanes --------------------------------------------------------------------------------------------


def test_pages_take_turns_however_much_one_of_them_asks_for() -> None:
    lane, gate = Lane("x", at_once=1, most=20, each=10), Gate()
    tickets = entered(lane, gate, "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert [lane.ahead(ticket) for ticket in tickets] == [0, 1, 4, 6, 2, 5, 3]
    gate.opened.set()
    for ticket in tickets:
        ticket.future.result(PATIENCE)
    assert gate.order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_a_lane_is_bounded_in_all_and_for_each_page() -> None:
    lane, gate = Lane("x", at_once=1, most=3, each=2), Gate()
    entered(lane, gate, "a1", "a2", "a3")
    with pytest.raises(BusyError, match="2 pieces of your work wait already"):
        entered(lane, gate, "a4")
    entered(lane, gate, "b1")
    with pytest.raises(BusyError, match="the server is busy: 3 pieces of work wait already"):
        entered(lane, gate, "c1")
    gate.opened.set()
    until(lambda: not lane.tickets())
    assert gate.order == ["a1", "a2", "b1", "a3"]
    late = Ticket(9, "", "c", gate.work("c1"))
    lane.enter(late)
    assert late.future.result(PATIENCE) == "c1"


def test_as_many_run_at_once_as_the_lane_allows() -> None:
    lane, gate = Lane("x", at_once=3, most=9, each=9), Gate()
    tickets = entered(lane, gate, "a1", "a2", "a3", "a4")
    until(lambda: len(lane.running) == 3)
    assert lane.ahead(tickets[3]) == 3
    gate.opened.set()
    assert [ticket.future.result(PATIENCE) for ticket in tickets] == ["a1", "a2", "a3", "a4"]


def test_what_is_given_up_while_it_waits_never_runs() -> None:
    lane, gate = Lane("x", at_once=1, most=9, each=9), Gate()
    _, second, third = entered(lane, gate, "a1", "a2", "a3")
    lane.leave(second)
    with pytest.raises(UnwantedError, match="this was cancelled"):
        second.future.result(0)
    assert lane.ahead(third) == 1
    gate.opened.set()
    third.future.result(PATIENCE)
    assert gate.order == ["a1", "a3"]


def test_what_is_given_up_while_it_runs_stops_at_its_next_count_and_says_how_far_it_is() -> None:
    queue, counted, go_on = Queue(), threading.Event(), threading.Event()
    ended: list[int] = []

    def count() -> None:
        with bar("counting", 10, False) as tick:
            for number in range(1, 11):
                tick(number)
                ended.append(number)
                counted.set()
                assert go_on.wait(PATIENCE)

    ticket = queue.enter("model", count, "me", "count")
    assert counted.wait(PATIENCE)
    (line,) = queue.of_page("me").lines
    assert (line.what, line.running, line.done, line.total) == ("count", True, 1, 10)
    assert queue.of_page("another").lines == []
    queue.leave_number("another", ticket.number)
    assert ticket.wanted, "a page gives up its own work only"
    queue.leave_number("me", ticket.number)
    go_on.set()
    until(lambda: not queue.lanes["model"].running)
    assert ended == [1]


def test_an_error_is_that_of_its_own_work_and_the_lane_goes_on() -> None:
    queue = Queue()
    failing = queue.enter("model", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.future.result(PATIENCE)
    assert queue.enter("model", lambda: 3).future.result(PATIENCE) == 3


def test_a_queue_that_closes_stops_what_runs_and_forgets_what_waits() -> None:
    queue, running = Queue(), threading.Event()

    def forever() -> None:
        running.set()
        while True:
            stop_if_unwanted()
            time.sleep(0.005)

    queue.enter("model", forever)
    waiting = queue.enter("model", forever)
    assert running.wait(PATIENCE)
    queue.close()
    assert not any(lane.tickets() for lane in queue.lanes.values())
    assert isinstance(waiting.future.exception(0), UnwantedError)


# On a server --------------------------------------------------------------------------------------


MOST, EACH = 4, 2  # pieces of work that wait for the model, of all pages and of one


@pytest.fixture
def served(gpt: aa.Atlas, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setitem(queues.LANES, "model", (1, MOST, EACH))
    with launch.start([gpt], port=0, models=[LiveModel("builtin:gpt")]) as running:
        yield running.url + "api/"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Edits wait until this is set."""
    may_end, real = threading.Event(), LabInput.edit

    def slow(self: LabInput, asked: Any) -> Any:
        assert may_end.wait(PATIENCE)
        stop_if_unwanted()
        return real(self, asked)

    monkeypatch.setattr(LabInput, "edit", slow)
    yield may_end
    may_end.set()


def post(url: str, action: str, body: Any, page: str = "me") -> httpx.Response:
    headers = {"X-Atlas-Page": page}
    return httpx.post(url + action, json=body, headers=headers, timeout=PATIENCE)


def lines(url: str, page: str) -> list[Any]:
    return list(unpack(httpx.get(f"{url}queue/{page}", timeout=PATIENCE).content)["lines"])


def test_a_full_queue_answers_with_a_sentence_and_packets_are_still_answered(
    served: str, gate: threading.Event
) -> None:
    pages = [f"page{at}" for at in range(MOST + 1)]  # one runs, the others wait
    with ThreadPoolExecutor(MOST + 1) as clients:
        asked = [clients.submit(post, served, "edit", EDIT, page) for page in pages]
        until(lambda: all(lines(served, page) for page in pages))
        full = post(served, "edit", EDIT, "late")
        assert full.status_code == 503
        assert unpack(full.content)["error"].startswith(f"the server is busy: {MOST} pieces")
        began = time.monotonic()
        for path in ("about", "edges/1/decoder", "rows/0/L0H0"):
            assert httpx.get(served + path).status_code == 200
        assert time.monotonic() - began < 10, "views do not wait for edits"
        gate.set()
        assert {answer.result().status_code for answer in asked} == {200}


def test_eighty_texts_at_once_are_bounded_and_freeze_nobody(
    served: str, gate: threading.Event
) -> None:
    """The first piece of work blocks the lane, so nothing here depends on how fast it is."""
    with ThreadPoolExecutor(90) as clients:
        blocker = clients.submit(post, served, "edit", EDIT, "first")
        until(lambda: lines(served, "first"))
        texts = [clients.submit(post, served, "add", {"text": f"It is {i}."}) for i in range(80)]
        until(lambda: sum(text.done() for text in texts) == 80 - EACH)
        assert httpx.get(served + "input/0").status_code == 200
        gate.set()
        assert blocker.result().status_code == 200
        answers = [text.result() for text in texts]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(refused) == 80 - EACH
    assert all("of your work wait already" in unpack(each.content)["error"] for each in refused)
    assert {answer.status_code for answer in answers} == {200, 503}
    about = unpack(httpx.get(served + "about").content)
    assert len(about["added"]) == EACH


def test_a_page_sees_its_place_and_cancels(served: str, gate: threading.Event) -> None:
    with ThreadPoolExecutor(3) as clients:
        first = clients.submit(post, served, "edit", EDIT, "one")
        until(lambda: [line["running"] for line in lines(served, "one")] == [True])
        second = clients.submit(post, served, "edit", EDIT, "two")
        (line,) = until(lambda: lines(served, "two"))
        assert (line["what"], line["running"], line["ahead"]) == ("edit", False, 1)
        left = post(served, "leave", {"page": "two", "ticket": line["ticket"]})
        assert left.status_code == 200 and unpack(left.content)["lines"] == []
        cancelled = second.result(PATIENCE)
        assert cancelled.status_code == 409
        assert unpack(cancelled.content)["error"] == "this was cancelled"
        assert not first.done()
        gate.set()
        assert first.result().status_code == 200


def test_a_page_that_goes_away_leaves_the_queue(served: str, gate: threading.Event) -> None:
    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(post, served, "edit", EDIT, "one")
        until(lambda: lines(served, "one"))

        async def ask_and_go() -> None:
            async with httpx.AsyncClient() as client:
                headers = {"X-Atlas-Page": "two"}
                asking = asyncio.create_task(
                    client.post(served + "edit", json=EDIT, headers=headers, timeout=PATIENCE)
                )
                while not lines(served, "two"):
                    await asyncio.sleep(0.01)
                asking.cancel()

        asyncio.run(ask_and_go())
        until(lambda: not lines(served, "two"))
        gate.set()
        assert first.result().status_code == 200


def test_clients_without_a_name_are_told_apart_by_their_machine(served: str) -> None:
    for name in ("", "<script>", "x" * 33, "a b"):
        answer = httpx.post(served + "edit", json=EDIT, headers={"X-Atlas-Page": name})
        assert answer.status_code == 200


def test_measuring_is_counted_for_the_page_that_waits(
    gpt: aa.Atlas, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, may_end, seen = measure_atlas, threading.Event(), threading.Event()

    def slow(*asked: Any, **options: Any) -> Any:
        with bar("measuring", 7, False) as tick:
            tick(3)
            seen.set()
            assert may_end.wait(PATIENCE)
        return real(*asked, **options)

    monkeypatch.setattr(heads, "measure_atlas", slow)
    with launch.start([gpt], port=0) as running, ThreadPoolExecutor(1) as clients:
        url = running.url + "api/"
        asked = clients.submit(
            httpx.get, url + "heads", headers={"X-Atlas-Page": "me"}, timeout=PATIENCE
        )
        assert seen.wait(PATIENCE)
        (line,) = lines(url, "me")
        assert (line["what"], line["done"], line["total"]) == ("heads", 3, 7)
        may_end.set()
        answer = unpack(asked.result().content)
    assert "are not kept; to keep them, run: attention-atlas measure gpt.atlas" in answer["note"]


def test_those_who_ask_for_the_same_packet_at_once_wait_for_the_same_work(
    gpt: aa.Atlas, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, may_end, calls = Answers.answer, threading.Event(), list[str]()

    def slow(self: Answers, path: str) -> Any:
        if path.startswith("edges"):
            calls.append(path)
            assert may_end.wait(PATIENCE)
        return real(self, path)

    monkeypatch.setattr(Answers, "answer", slow)
    with launch.start([gpt], port=0) as running, ThreadPoolExecutor(20) as clients:
        url = running.url + "api/edges/0/decoder"
        asked = [clients.submit(httpx.get, url, timeout=PATIENCE) for _ in range(20)]
        until(lambda: calls)
        with pytest.raises(httpx.ReadTimeout):  # one goes away, and the others do not notice
            httpx.get(url, timeout=0.2)
        may_end.set()
        answers = [answer.result() for answer in asked]
    assert len(calls) == 1
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


# Maps and texts -----------------------------------------------------------------------------------


def test_maps_of_two_atlases_are_computed_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = planted.sentences(4)
    atlases = [planted.write(tmp_path / n, texts, *planted.vectors(texts)) for n in ("a", "b")]
    may_end, real = threading.Event(), chunk.make_chunk

    def slow(*asked: Any) -> Any:
        assert may_end.wait(PATIENCE)
        return real(*asked)

    monkeypatch.setattr(run, "make_chunk", slow)
    first, second = make_answers(atlases)
    body = {"method": "pca", "dims": 2}
    assert unpack(first.perform("compute", body)[0])["state"] == "running"
    until(lambda: first.queue.lanes["maps"].running)
    waits = unpack(second.perform("compute", body)[0])
    assert (waits["state"], waits["ahead"]) == ("waiting", 1)
    assert unpack(second.perform("cancel", {})[0])["state"] == "stopped"
    assert unpack(second.perform("compute", body)[0])["state"] == "waiting"
    may_end.set()
    for answers in (first, second):
        until(partial(_is_done, answers))


def _is_done(answers: Answers) -> bool:
    return bool(unpack(answers.packet("progress")[0])["state"] == "done")


def test_only_so_many_texts_are_kept_in_memory(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_ADDED", 1)
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    assert answers.perform("add", {"text": "It is late."})[1]
    packet, done = answers.perform("add", {"text": "It is early."})
    assert not done and "1 texts were added already" in unpack(packet)["error"]


# Read-only ----------------------------------------------------------------------------------------


def test_a_read_only_server_shows_everything_and_does_nothing(gpt: aa.Atlas) -> None:
    files = {path: path.stat().st_mtime_ns for path in gpt.path.rglob("*")}
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")], read_only=True)
    about = unpack(answers.packet("about")[0])
    assert about["read_only"] and about["can_measure"]
    assert not (about["can_compute"] or about["can_add"] or about["can_edit"])
    assert about["no_compute"] == about["no_edits"] == background.READ_ONLY
    for action, body in {
        "compute": {"method": "pca", "dims": 2}, "place": {"map": "pca-2d", "head": "L0H0"},
        "add": {"text": "It is late."}, "edit": EDIT, "test_label": {"head": "L0H0"},
    }.items():  # fmt: skip
        packet, done = answers.perform(action, body)
        assert not done and unpack(packet)["error"] == background.READ_ONLY
    for path in ("input/0", "edges/0/decoder", "heads", "card/L0H0"):
        assert answers.packet(path)[1], path
    assert answers.perform("cancel", {})[1]
    assert {path: path.stat().st_mtime_ns for path in gpt.path.rglob("*")} == files
