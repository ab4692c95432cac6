"""All heads on one screen: our page and deck.gl as AttentionViz uses it, in one browser and run.

    python -m benchmarks.matrix            144 heads × 10,000 points and 1,024 × 2,000

Both get the same places. deck.gl has one ScatterplotLayer a head, fed lists of objects parsed from
JSON; it comes from the npm registry into .cache. A time ends when the whole picture is finished:
after the last draw call one pixel is read back, which waits for the graphics processor. Script
time is what the page's main thread works for the same step, not counting that wait. While the map
is moved ours draws a sample of the points, as many as the machine can. Results go to matrix.md.
"""

import argparse
import http.server
import json
import statistics
import sys
import tarfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import CDPSession, Error, Page, sync_playwright

from attention_atlas.page.hosts.figure import FLAGS, find_browser
from attention_atlas.page.hosts.static_files import SERVED, static
from benchmarks.machine import about
from benchmarks.matrix_data import as_json, attentionviz_bytes, packets

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache" / "deck"
RESULTS = HERE / "results" / "matrix.json"
DECK = "deck.gl@9.4.0"
CASES = {
    "144 heads × 10,000 points": (12, 12, 10_000),
    "1,024 heads × 2,000 points": (32, 32, 2_000),
}
PATIENCE = 60_000  # milliseconds for one step
SLOW = 3_000
SIZE: Any = {"width": 1480, "height": 900}

# Counts draw calls, and waits until a picture is finished.
WATCH = """
window.draws = 0;
for (const name of ['drawArrays', 'drawElements', 'drawArraysInstanced', 'drawElementsInstanced']) {
  const plain = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...given) {
    window.draws++; window.gl = this; return plain.apply(this, given); };
}
window.frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
window.finished = () => { gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); };
window.patient = promise => Promise.race([promise, new Promise((_, fail) =>
  setTimeout(() => fail(new Error('no picture in time')), 60000))]);
window.timed = async step => { const start = performance.now(); await patient(step()); finished();
  return performance.now() - start; };
window.moves = [];
window.watchMoves = () => addEventListener('pointermove', async event => { const before = draws;
  while (draws === before) await frame();
  finished(); moves.push(performance.now() - event.timeStamp); }, true);
"""
OURS = """
const there = () => document.querySelector('[data-testid=map-canvas]')?.dataset.whole === 'true';
// As a person does it: a choice in the list, letters in the field.
const given = async (name, value, kind) => { const before = draws;
  const place = document.querySelector(`[data-testid=${name}]`);
  place.value = value; place.dispatchEvent(new Event(kind, { bubbles: true }));
  await bench.whole(before); };
window.bench = {
  async whole(before) { while (draws === before || !there()) await frame(); },
  recolour: name => given('colour', name, 'change'),
  search: word => given('search', word < 0 ? '' : `word${word}`, 'input'),
};
const plain = window.fetch;
window.sent = 0;
window.fetch = async (...given) => { const answer = await plain(...given);
  const bytes = await answer.arrayBuffer(); window.sent = performance.now();
  return { arrayBuffer: async () => bytes }; };
"""


def deck_script() -> bytes:
    """deck.gl's bundle from npm, kept."""
    kept = CACHE / (DECK.replace("@", "-") + ".tgz")
    if not kept.is_file():
        from hatch_build import npm

        CACHE.mkdir(parents=True, exist_ok=True)
        npm(CACHE, "pack", DECK, "--silent")
    with tarfile.open(kept) as archive:
        found = archive.extractfile("package/dist.min.js")
        assert found is not None
        return found.read()


class Served:
    """Paths and what they answer, and the bytes that were asked for."""

    def __init__(self, files: dict[str, bytes]):
        self.files = files
        self.sent: dict[str, int] = {}
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0].lstrip("/")
                body = owner.files.get(path)
                self.send_response(404 if body is None else 200)
                kind = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
                ending = path.rpartition(".")[2] or "html"
                self.send_header("Content-Type", kind.get(ending, "application/octet-stream"))
                self.end_headers()
                owner.sent[path] = len(body or b"")
                self.wfile.write(body or b"")

            def log_message(self, *_: Any) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


def memory() -> float:
    """MB that belong to the browser's processes alone."""
    every = psutil.Process().children(recursive=True)
    return float(sum(one.memory_full_info().uss for one in every if "chrom" in one.name()) / 1e6)


def busy(session: CDPSession) -> float:
    """Milliseconds that the page's main thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def step(page: Page, session: CDPSession, what: str, again: str) -> dict[str, float]:
    """A step until its picture is finished; then another of its kind for the script's time alone.

    Reading a pixel back holds the main thread, so it must not be counted as its work.
    """
    wall = page.evaluate(f"() => timed(() => {what})")
    before = busy(session)
    page.evaluate(f"() => patient({again})")
    worked = busy(session) - before
    page.evaluate("finished()")
    return {"wall": wall, "script": worked}


def middle(steps: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in steps) for name in ("wall", "script")}


def repeated(page: Page, session: CDPSession, pairs: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """The median over pairs of steps; what is slow is done once."""
    steps = [step(page, session, *pairs[0])]
    if steps[0]["wall"] < SLOW:
        steps += [step(page, session, *pair) for pair in pairs[1:]]
    return middle(steps)


def used(page: Page, session: CDPSession, found: dict[str, Any]) -> None:
    """Recolour, search and pan, each put down as it is known."""
    colours = [("position", "mod5"), ("kind", "position"), ("mod5", "kind")]
    recolours = [tuple(f"bench.recolour('{one}')" for one in pair) for pair in colours]
    searches = [(f"bench.search({word})", f"bench.search({word + 1})") for word in (17, 19, 21)]
    found["recolour"] = repeated(page, session, recolours)
    found["search"] = repeated(page, session, searches)
    page.evaluate("patient(bench.search(-1))")
    page.mouse.move(640, 400)
    page.mouse.down()
    page.evaluate("watchMoves()")
    for i in range(1 if found["recolour"]["wall"] > SLOW else 6):
        page.mouse.move(640 + 7 * (i + 1), 400 + 3 * (i + 1))
        page.wait_for_function(f"moves.length > {i}", timeout=PATIENCE)
    page.mouse.up()
    found["pan"] = {"wall": statistics.median(page.evaluate("moves"))}


def ours(browser: Any, layers: int, across: int, points: int) -> dict[str, Any]:
    files = {f"api/{path}": packet for path, packet in packets(layers, across, points).items()}
    names = ("page.html", *SERVED)
    served = Served({**files, **{name: static(name).read_bytes() for name in names}})
    served.files[""] = served.files["page.html"]

    def first(page: Page) -> dict[str, Any]:
        page.goto(served.url)
        wall = page.evaluate(
            "async () => { await patient(bench.whole(0)); finished();"
            " return performance.now() - sent; }"
        )
        # Times of one page: the first frame cannot be repeated in it.
        return {"first": {"wall": wall}, "bytes": sum(served.sent.values())}

    return run(browser, first, OURS)


def theirs(browser: Any, layers: int, across: int, points: int) -> dict[str, Any]:
    page_file = (HERE / "matrix_deck.html").read_bytes()
    data = as_json(layers * across, points)
    served = Served({"": page_file, "deck.js": deck_script(), "data.json": data})

    def first(page: Page) -> dict[str, Any]:
        page.goto(f"{served.url}?across={across}")
        page.evaluate("bench.load()")
        wall = page.evaluate("() => timed(() => bench.first())")
        code = len(page_file) + len(served.files["deck.js"])
        sent = attentionviz_bytes(layers * across, points) + code
        return {"first": {"wall": wall}, "bytes": sent, "bytes_one": sum(served.sent.values())}

    return run(browser, first, "")


def run(browser: Any, first: Callable[[Page], dict[str, Any]], script: str) -> dict[str, Any]:
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("about:blank")
    before = memory()
    page.add_init_script(WATCH + script)
    page.add_init_script("try { localStorage['attention-atlas-hints'] = 'seen' } catch {}")
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    found: dict[str, Any] = {}
    try:
        found |= first(page)
        session.send("HeapProfiler.collectGarbage")
        found["memory"] = memory() - before
        used(page, session, found)
    except Error as problem:
        # What took longer than PATIENCE stays empty in the table.
        print(problem.message.splitlines()[0], file=sys.stderr)
    finally:
        context.close()
    return found


ROWS: list[tuple[str, Callable[[dict[str, Any]], float], str]] = [
    ("bytes to the first frame", lambda one: one["bytes"] / 1e6, "MB"),
    ("the same, one projection only", lambda one: one.get("bytes_one", one["bytes"]) / 1e6, "MB"),
    ("data in memory to first whole frame", lambda one: one["first"]["wall"], "ms"),
    ("recolour, finished picture", lambda one: one["recolour"]["wall"], "ms"),
    ("recolour, script", lambda one: one["recolour"]["script"], "ms"),
    ("search, finished picture", lambda one: one["search"]["wall"], "ms"),
    ("search, script", lambda one: one["search"]["script"], "ms"),
    ("pan, mouse to finished frame", lambda one: one["pan"]["wall"], "ms"),
    ("memory of the browser for it", lambda one: one["memory"], "MB"),
]  # fmt: skip


def table(name: str, mine: dict[str, Any], deck: dict[str, Any]) -> list[str]:
    lines = [f"## {name}", "", "| | ours | deck.gl | times |", "|---|---:|---:|---:|"]
    for label, value, unit in ROWS:
        a = value(mine)
        try:
            b = value(deck)
        except KeyError:
            lines.append(f"| {label} | {a:,.1f} {unit} | none in time | |")
        else:
            lines.append(f"| {label} | {a:,.1f} {unit} | {b:,.1f} {unit} | {b / a:,.1f}× |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--only", choices=("ours", "theirs"), help="measure one side anew")
    given = parser.parse_args()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        for name in given.cases:
            for side, measure in {"ours": ours, "theirs": theirs}.items():
                if given.only in (None, side):
                    found = measure(browser, *CASES[name])
                    print(side, json.dumps(found), flush=True)
                    keep(name, side, found)
        where = f"{about()}; Chromium {browser.version}, WebGL by SwiftShader (no GPU); {DECK}."
        browser.close()
    report(where)


def kept() -> dict[str, Any]:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {}


def keep(name: str, side: str, found: dict[str, Any]) -> None:
    """At once: a run that is cut short is not lost."""
    all_found = kept()
    all_found.setdefault(name, {})[side] = found
    RESULTS.write_text(json.dumps(all_found, indent=1) + "\n", encoding="utf-8")


def report(where: str) -> None:
    lines = [
        "# The matrix of all heads, against deck.gl", "",
        "Made by `python -m benchmarks.matrix`; what is measured and how is said there.", "",
    ]  # fmt: skip
    for name, found in kept().items():
        # A side that was cut short, after five minutes at the latest, left nothing.
        lines += table(name, found["ours"], found.get("theirs", {}))
    (HERE / "matrix.md").write_text("\n".join([*lines, where]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
