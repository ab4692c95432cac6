"""What breaks under a server ends in a sentence, and its other atlases go on."""

import errno
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import attention_atlas as aa
from attention_atlas.layout import device
from attention_atlas.names.errors import StoreError
from attention_atlas.page.answers import heads
from attention_atlas.page.hosts import connections, launch
from attention_atlas.page.hosts.few_lines import FewLines
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.in_words import in_words
from attention_atlas.page.live.lab_input import LabInput
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store.parts import Journal
from tests import planted

PATIENCE = 180.0
SERVE = """
import sys, resource
from pathlib import Path
from attention_atlas.page.hosts import connections, launch, static_files
from attention_atlas.layout import device, run
from attention_atlas.store.reader import StoredAtlas

static_files.STATIC = Path(sys.argv[1])
connections.SLOWEST_REQUEST = float(sys.argv[2])
device.POINTS_AT_ONCE = 1  # a chunk for each head
real = run.make_chunk
# A chunk waits for a line, so that a test knows how far the map is; without a writer none waits.
run.make_chunk = lambda *asked: (sys.stdin.readline(), real(*asked))[1]
for limit, number in zip((resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE), sys.argv[3:5]):
    if int(number):
        resource.setrlimit(limit, (int(number), int(number)))
atlases = [StoredAtlas.open(Path(path)) for path in sys.argv[5:]]
launch.serve(atlases, port=0, browser=False, say=lambda line: print(line, flush=True))
"""


@contextmanager
def serving(
    static: Path,
    *atlases: Path,
    slowest: float = 20,
    files: int = 0,
    largest: int = 0,
    stdin: int = subprocess.DEVNULL,
) -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    """A server as a process of its own: its link, and the process.

    files    how many it may have open; 0: as many as this one
    largest  bytes that a file may have when it is written, as on a disk that is nearly full
    stdin    each head of a map takes a line from it before it is computed; by default none waits
    """
    command = [
        sys.executable,
        "-c",
        SERVE,
        str(static),
        str(slowest),
        str(files),
        str(largest),
        *map(str, atlases),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line, process.stderr.read()
            url = line.split()[1]
            until(lambda: _answers(url))  # the link is printed a moment before it is open
            yield url, process
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=PATIENCE).status_code == 200
    except httpx.HTTPError:
        return False


def until(true: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def write(folder: Path, sentences: int = 4) -> aa.Atlas:
    texts = planted.sentences(sentences)
    return planted.write(folder, texts, *planted.vectors(texts))


def refused(answer: tuple[bytes, bool]) -> str:
    packet, done = answer
    assert not done
    return str(unpack(packet)["error"])


# The server is killed -----------------------------------------------------------------------------


@pytest.mark.full
def test_a_server_that_is_killed_finds_everything_when_it_starts_again(
    tmp_path: Path, stand_in: Path
) -> None:
    """Killed in the middle of a map: finished heads are kept, and nothing else is left behind."""
    atlas = write(tmp_path / "x.atlas")
    body = {"method": "pca", "dims": 2}

    def progress(url: str) -> Any:
        return unpack(httpx.get(url + "api/progress", timeout=PATIENCE).content)

    def let_through(process: "subprocess.Popen[str]", heads: int) -> None:
        assert process.stdin is not None
        process.stdin.write("go\n" * heads)
        process.stdin.flush()

    with serving(stand_in, atlas.path, stdin=subprocess.PIPE) as (url, process):
        httpx.post(url + "api/compute", json=body, timeout=PATIENCE)
        let_through(process, 2)
        until(lambda: progress(url)["done"] == 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(stand_in, atlas.path, stdin=subprocess.PIPE) as (url, process):
        about = unpack(httpx.get(url + "api/about", timeout=PATIENCE).content)
        assert about["maps"] == [] and len(about["inputs"]) == 4
        httpx.post(url + "api/compute", json=body, timeout=PATIENCE)
        until(lambda: progress(url)["done"] == 2)  # before any head is let through
        let_through(process, 3)  # finished heads are not computed again: three are enough for five
        until(lambda: progress(url)["state"] == "done")
        assert httpx.get(url + "api/map/pca-2d/decoder", timeout=PATIENCE).status_code == 200
    left = {path.name for path in atlas.path.rglob("*.part*")}
    assert not left


# The disk is full ---------------------------------------------------------------------------------


def test_a_full_disk_stops_a_map_in_a_sentence_and_others_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, other = make_answers([write(tmp_path / "a"), write(tmp_path / "b")])
    layouts = tmp_path / "a" / "layouts"
    monkeypatch.setattr(device, "POINTS_AT_ONCE", 1)
    real = Journal.add

    def add(self: Any, *given: Any) -> None:
        if layouts in self.folder.parents:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, *given)

    monkeypatch.setattr(Journal, "add", add)
    for answers in (full, other):
        answers.perform("compute", {"method": "pca", "dims": 2})

    def ended(answers: Answers) -> Any:
        now = unpack(answers.packet("progress")[0])
        return now["state"] in ("failed", "done") and now

    failed = until(lambda: ended(full))
    assert (failed["state"], failed["error"]) == (
        "failed", "the disk is full; free some space on the server, then try again",
    )  # fmt: skip
    assert until(lambda: ended(other))["state"] == "done"
    assert full.packet("edges/0/decoder")[1], "what is there can still be looked at"


@pytest.mark.full
def test_a_server_without_room_and_with_a_deleted_atlas_still_serves_the_third(
    tmp_path: Path, stand_in: Path
) -> None:
    """The system itself refuses to write, and a folder is really gone."""
    for name in ("a", "b", "c"):
        write(tmp_path / name)

    def told(path: str) -> tuple[int, Any]:
        answer = httpx.get(url + path, timeout=PATIENCE)
        return answer.status_code, unpack(answer.content)

    folders = [tmp_path / name for name in ("a", "b", "c")]
    with serving(stand_in, *folders, largest=100) as (url, _):
        httpx.post(url + "api/compute", json={"method": "pca", "dims": 2}, timeout=PATIENCE)
        failed = until(lambda: (now := told("api/progress")[1])["state"] == "failed" and now)
        assert failed["error"] == "the disk is full; free some space on the server, then try again"
        shutil.rmtree(folders[1])
        status, gone = told("1/api/edges/0/decoder")
        assert status == 404 and "a file of this atlas is no longer there" in gone["error"]
        for path in ("api/edges/0/decoder", "2/api/about", "2/api/edges/0/decoder", "2/api/heads"):
            assert told(path)[0] == 200
    assert not list(tmp_path.rglob("*.part")), "what could not be written is not left behind"


# An atlas is deleted while it is served -----------------------------------------------------------


def test_an_atlas_that_is_deleted_says_so_and_the_others_go_on(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, other = write(tmp_path / "a"), write(tmp_path / "b")
    gone.layout("pca", progress=False)
    answers, others = make_answers([aa.open(gone.path), aa.open(other.path)])
    assert answers.packet("edges/0/decoder")[1]
    shutil.rmtree(gone.path)
    for path in (
        "about", "input/1", "edges/1/decoder", "rows/1/L0H0", "layer/1/decoder/0", "heads", "alike",
        "vectors/1/L0H0", "map/pca-2d/decoder", "points/pca-2d/decoder", "norms/pca-2d/decoder",
        "mean/L0H0", "card/L0H0", "all/pca-2d/L0H0", "partners/1/L0H0/query/0", "compare/0",
    ):  # fmt: skip
        packet, answered = answers.packet(path)  # what is in memory may still be answered
        assert answered or unpack(packet)["error"], path
    sentence = refused(answers.perform("compute", {"method": "pca", "dims": 2}))
    assert "a cannot be written to" in sentence
    assert others.packet("about")[1] and others.packet("edges/1/decoder")[1]
    assert others.packet("heads")[1]


# Memory -------------------------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """As torch names its own."""


NO_MEMORY = [
    MemoryError(), OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: Error code 12"),
]  # fmt: skip


@pytest.mark.parametrize("problem", NO_MEMORY, ids=["NumPy", "GPU", "CPU"])
def test_a_model_that_runs_out_of_memory_says_so_and_the_next_edit_runs(
    gpt: aa.Atlas, bert: aa.Atlas, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    answers, other = make_answers([gpt, bert], [LiveModel("builtin:gpt"), None])
    body = {"input": 0, "edits": [aa.ablate("L4H5").to_json()]}

    def lacking(self: Any, *given: Any) -> Any:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(LabInput, "edit", lacking)
        patch.setattr(LiveModel, "read", lacking)
        for action, sent in (("edit", body), ("add", {"text": "It is late."})):
            said = refused(answers.perform(action, sent))
            assert said.startswith("there is not enough memory for this; try a shorter input")
        assert other.packet("edges/0/encoder")[1]
    assert answers.perform("edit", body)[1]


LITTLE_MEMORY = """
import json, resource, sys
from pathlib import Path
import attention_atlas as aa
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from tests.atlases import word_tokenizer
import torch, transformers
torch.manual_seed(0)
config = transformers.GPT2Config(
    vocab_size=20, n_embd=64, n_layer=2, n_head=8, n_positions=6000, bos_token_id=1, eos_token_id=1,
    attn_implementation="eager",
)
model = transformers.GPT2LMHeadModel(config).eval()
text = "she sees the small elephant"
atlas = aa.capture(model, [text], tokenizer=word_tokenizer(), progress=False)
other = aa.open(Path(sys.argv[1]))
answers, others = make_answers([atlas, other], [LiveModel(model, word_tokenizer()), None])
edit = {"input": 0, "edits": [aa.ablate("L0H0").to_json()]}
assert answers.perform("edit", edit)[1]  # what is imported late is there now
assert answers.perform("add", {"text": text})[1]
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + 400_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, most))
long, done = answers.perform("add", {"text": " ".join(["she"] * 4000)})
print(json.dumps({
    "long": [done, unpack(long).get("error")],
    "after": [answers.perform("edit", edit)[1], answers.perform("add", {"text": text})[1]],
    "other": others.packet("edges/0/decoder")[1],
}))
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited on Linux only")
def test_a_model_that_really_runs_out_of_memory_says_so_and_goes_on(tmp_path: Path) -> None:
    """4,000 tokens need 512 MB a layer for their weights alone, and 400 MB are left."""
    write(tmp_path / "x.atlas")
    command = [sys.executable, "-c", LITTLE_MEMORY, str(tmp_path / "x.atlas")]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=root)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    sentence = told["long"][1]
    assert not told["long"][0] and "not enough memory" in sentence, sentence
    assert told["after"] == [True, True] and told["other"]


def test_a_packet_that_runs_out_of_memory_says_so(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(heads, "measure_atlas", lacking)
    (answers,) = make_answers([gpt])
    assert refused(answers.packet("heads")).startswith("there is not enough memory")
    assert answers.packet("edges/0/decoder")[1]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk is full"),
        (errno.ENOENT, "a file of this atlas is no longer there"),
        (errno.EMFILE, "too many files are open"), (errno.EIO, "cannot be used: Input/output"),
    ],
)  # fmt: skip
def test_troubles_of_the_system_are_told_without_names_of_folders(
    number: int, sentence: str
) -> None:
    known = in_words(OSError(number, os.strerror(number), "/secret/folder/x.atlas"))
    assert isinstance(known, StoreError) and sentence in str(known) and "secret" not in str(known)


def test_what_nobody_foresaw_stays_an_error() -> None:
    assert in_words(KeyError("x")) is None


# A folder that cannot be written to ---------------------------------------------------------------

HEADS_ALONE = """
import json, sys
from pathlib import Path
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store.reader import StoredAtlas
(answers,) = make_answers([StoredAtlas.open(Path(sys.argv[1]))])
told = [answers.packet(path) for path in ("about", "heads", "alike", "card/L0H0")]
about, scores = (unpack(packet) for packet, _ in told[:2])
print(json.dumps({"answered": [answered for _, answered in told], "note": scores["note"],
    "can_compute": about["can_compute"], "no_compute": about["no_compute"]}))
"""


def test_heads_of_a_folder_that_cannot_be_written_are_measured_in_memory_and_say_so(
    tmp_path: Path,
) -> None:
    """Root may write everywhere, so root runs it without the right to."""
    weak = "--bounding-set=-dac_override,-dac_read_search"
    prefix = ["setpriv", weak] if os.getuid() == 0 else []
    if prefix and not shutil.which("setpriv"):
        pytest.skip("root needs setpriv to give up its right to write everywhere")
    atlas = write(tmp_path / "x.atlas")
    paths = [atlas.path, *atlas.path.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    command = [*prefix, sys.executable, "-c", HEADS_ALONE, str(atlas.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd="/")
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["answered"] == [True] * 4
    assert told["note"] == (
        "These scores were measured now and are not kept: x.atlas cannot be written to."
    )
    assert not told["can_compute"] and "x.atlas cannot be written to" in told["no_compute"]


# Half-open connections ----------------------------------------------------------------------------


@pytest.mark.full
def test_connections_that_send_nothing_starve_nobody_and_fill_no_log(
    tmp_path: Path, stand_in: Path
) -> None:
    """Eleven hundred of them, against a server that may open 1,024 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 3000)), hard))
    atlas = write(tmp_path / "x.atlas")
    opened: list[socket.socket] = []
    with serving(stand_in, atlas.path, slowest=3, files=1024) as (url, process):
        port = httpx.URL(url).port or 0
        try:
            for number in range(1100):
                opened.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
                if number % 2:
                    opened[-1].sendall(b"GET /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
            for path in ("api/about", "api/edges/0/decoder"):
                assert httpx.get(url + path, timeout=PATIENCE).status_code == 200
            # In the end none is left, though they never closed.
            opened[-1].settimeout(PATIENCE)
            assert _ended(opened[-1])
        finally:
            for connection in opened:
                connection.close()
        assert httpx.get(url + "api/about", timeout=PATIENCE).status_code == 200
        process.terminate()
        log = process.stderr.read() if process.stderr else ""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(log) < 100_000


def _ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_request_letter_by_letter_is_cut_off(
    gpt: aa.Atlas, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SLOWEST_REQUEST", 0.5)
    monkeypatch.setattr(connections, "_EVERY", 0.1)
    with launch.start([gpt], port=0) as running:
        port = httpx.URL(running.url).port or 0
        with socket.create_connection(("127.0.0.1", port)) as slow:
            head = b"POST /api/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
            slow.sendall(head + b"Content-Type: application/json\r\n\r\n")
            slow.settimeout(0.05)
            until(lambda: _cut_off(slow))
        assert httpx.get(running.url + "api/about", timeout=PATIENCE).status_code == 200


def _cut_off(slow: socket.socket) -> bool:
    """Sends one more letter, and sees whether the other side has gone."""
    try:
        slow.sendall(b" ")
        return slow.recv(1000) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_log_has_some_lines_a_minute_and_says_how_many_are_missing() -> None:
    import logging

    limit = FewLines(lines=2, seconds=0.2)
    records = [logging.LogRecord("x", 40, "", 0, f"line {at}", None, None) for at in range(6)]
    assert [limit.filter(record) for record in records[:5]] == [True, True, False, False, False]
    until(lambda: limit.filter(records[5]))
    assert "lines before were left out) line 5" in records[5].getMessage()
