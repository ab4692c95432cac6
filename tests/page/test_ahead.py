"""What contributions need is there when the switch is turned, and nobody waits for it meanwhile."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.recent_layers import RecentLayers
from attention_atlas.page.hosts import launch
from attention_atlas.page.live import ahead
from attention_atlas.page.live.ahead import Ahead
from attention_atlas.page.live.queue import Queue
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store import moved_rows
from attention_atlas.store.contributions import Given, layer_output
from tests import atlases
from tests.made_once import MadeOnce
from tests.page.test_queue import PATIENCE, Gate, until

Products = list[threading.Thread]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Products:
    """The thread of every product that is made from now on."""
    threads: Products = []
    plain = layer_output

    def counted(*given: Any) -> Given:
        threads.append(threading.current_thread())
        return plain(*given)

    monkeypatch.setattr(moved_rows, "layer_output", counted)
    monkeypatch.setattr(ahead, "QUIET", 0.0)
    return threads


@pytest.fixture
def url(gpt: aa.Atlas, stand_in: Any) -> Iterator[str]:
    with launch.start([aa.open(gpt.path)], port=0) as running:
        yield f"{running.url}api/"


def test_the_switch_finds_what_it_needs_after_weights_were_sent(
    url: str, made: Products, gpt: aa.Atlas
) -> None:
    tower = gpt.towers[0]
    assert httpx.get(f"{url}edges/0/{tower.name}", timeout=PATIENCE).status_code == 200
    until(lambda: len(made) == len(tower.layers))
    sent = httpx.get(f"{url}as/contribution/-/layer/0/{tower.name}/2", timeout=PATIENCE).content
    assert len(made) == len(tower.layers)  # none was made for the request
    heads = tower.layers[2].heads
    expected = heads * aa.open(gpt.path).contributions(0, "L2H1")
    found = np.asarray(unpack(sent)["weights"])[1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_server_that_has_started_makes_what_its_first_input_needs(
    made: Products, url: str, gpt: aa.Atlas
) -> None:
    tower = gpt.towers[0]
    until(lambda: len(made) == len(tower.layers))
    path = f"{url}as/contribution/-/edges/0/{tower.name}"
    assert httpx.get(path, timeout=PATIENCE).status_code == 200
    assert len(made) == len(tower.layers)


def test_it_makes_the_packets_of_the_first_input_and_of_the_switch_of_any_other(
    gpt: aa.Atlas, made: Products
) -> None:
    queue, paths = Queue(), list[str]()
    coming, name = Ahead(Grown(aa.open(gpt.path)), queue, paths.append), gpt.towers[0].name
    coming.at_start()
    until(lambda: not queue.lanes["ahead"].tickets())
    coming.after(f"edges/1/{name}")
    until(lambda: not queue.lanes["ahead"].tickets())
    shares = [f"as/contribution/-/edges/{number}/{name}" for number in (0, 1)]
    assert paths == [f"edges/0/{name}", *shares]
    assert len(made) == 2 * len(gpt.towers[0].layers)


def test_a_server_of_an_atlas_without_values_starts_too(made_once: MadeOnce) -> None:
    queue = Queue()
    bare = Grown(aa.open(made_once("bare", atlases.bare) / "bare.atlas"))
    Ahead(bare, queue, nothing).at_start()
    until(lambda: not queue.lanes["ahead"].tickets())


def nothing(_path: str) -> None:
    """Make no packet."""


def foreseeing(atlas: Grown, queue: Queue) -> Callable[[], Any]:
    """What the lane holds after weights were asked for."""
    Ahead(atlas, queue, nothing).after(f"edges/0/{atlas.towers[0].name}")
    return queue.lanes["ahead"].tickets


def test_nothing_is_computed_ahead_while_others_wait(gpt: aa.Atlas, made: Products) -> None:
    queue, gate = Queue(), Gate()
    waiting = queue.enter("quick", gate.work("a1"))
    tickets = foreseeing(Grown(aa.open(gpt.path)), queue)
    until(lambda: tickets() and tickets()[0].running)
    assert not queue.is_idle(0) and not made
    gate.opened.set()
    waiting.future.result(PATIENCE)
    until(lambda: not tickets())
    assert len(made) == len(gpt.towers[0].layers)


def test_a_busy_server_gives_it_up(
    gpt: aa.Atlas, made: Products, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "PATIENCE", 0.0)
    queue, gate = Queue(), Gate()
    waiting = queue.enter("quick", gate.work("a1"))
    tickets = foreseeing(Grown(aa.open(gpt.path)), queue)
    until(lambda: not tickets())
    gate.opened.set()
    waiting.future.result(PATIENCE)
    assert not made


def test_the_input_that_is_asked_for_last_counts(gpt: aa.Atlas, made: Products) -> None:
    queue, gate, atlas = Queue(), Gate(), Grown(aa.open(gpt.path))
    waiting, coming = queue.enter("quick", gate.work("a1")), Ahead(atlas, queue, nothing)
    name = atlas.towers[0].name
    for number in (0, 1):
        coming.after(f"edges/{number}/{name}")
    gate.opened.set()
    waiting.future.result(PATIENCE)
    until(lambda: not queue.lanes["ahead"].tickets())
    kept = atlas.moved_rows("contribution")._kept
    assert {key[0] for key in kept} == {1}


@pytest.mark.parametrize("path", ["edges/0/decoder/2", "rows/0/L1H1", "as/moved/-/edges/0/decoder"])
def test_other_packets_are_not_followed_by_anything(path: str, gpt: aa.Atlas) -> None:
    queue = Queue()
    Ahead(Grown(gpt), queue, nothing).after(path)
    assert not queue.lanes["ahead"].tickets()


def test_large_projections_are_not_read_ahead(
    gpt: aa.Atlas, made: Products, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = gpt.towers[0].layers[0].heads * gpt.towers[0].layers[0].value_width
    monkeypatch.setattr(ahead, "LARGEST", 8 * width * width)  # those of one layer
    tickets = foreseeing(Grown(aa.open(gpt.path)), Queue())
    until(lambda: not tickets())
    assert not made


def test_an_atlas_without_values_has_nothing_to_foresee(made_once: MadeOnce) -> None:
    bare = aa.open(made_once("bare", atlases.bare) / "bare.atlas")
    assert foreseeing(Grown(bare), Queue())() == []


def test_what_two_ask_for_at_once_is_computed_once(gpt: aa.Atlas, made: Products) -> None:
    atlas, both = aa.open(gpt.path), threading.Barrier(2)

    def ask(_: int) -> Any:
        both.wait(PATIENCE)
        return atlas.moved_rows("contribution").rows(0, 3)

    first, second = _at_once(ask)
    np.testing.assert_array_equal(first, second)
    assert len(made) == 1
    recent, read = RecentLayers(), list[int]()

    class Counted(aa.Atlas):
        def rows(self, *where: Any) -> Any:
            read.append(1)
            return super().rows(*where)

    source = Counted(gpt.path, gpt.manifest)
    _at_once(lambda _: (both.wait(PATIENCE), recent.rows(source, 0, 3)))
    assert len(read) == 1


def _at_once(ask: Callable[[int], Any]) -> list[Any]:
    """What two threads get that ask at the same time."""
    found: list[Any] = [None, None]

    def run(place: int) -> None:
        found[place] = ask(place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found
