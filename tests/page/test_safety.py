"""Nobody reads more than they were shown, and nothing stops the server."""

import base64
import hashlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

import attention_atlas as aa
from attention_atlas.names.errors import InputError
from attention_atlas.page.hosts import launch
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.hosts.guard import Guard
from attention_atlas.page.wire.packing import unpack

HERE = "http://127.0.0.1:8642"


@pytest.fixture
def client(gpt: aa.Atlas, stand_in: Path) -> Iterator[TestClient]:
    with TestClient(make_app([gpt, gpt]), base_url=HERE) as made:
        yield made


@pytest.fixture
def guarded(gpt: aa.Atlas, stand_in: Path) -> Iterator[tuple[TestClient, str]]:
    guard = Guard.of("192.0.2.7")
    assert guard.token is not None
    app = make_app([gpt], guard)
    with TestClient(app, base_url="http://192.0.2.7:8642") as made:
        yield made, guard.token


def test_the_page_says_enough_of_the_atlas_to_read_a_link_early(
    client: TestClient, stand_in: Path
) -> None:
    (stand_in / "page.html").write_text('<html lang="en"><head></head></html>', encoding="utf-8")
    start = '<html lang="en" data-tower="decoder" data-inputs="'
    assert client.get("/").text.startswith(start)
    assert client.get("/1/").text.endswith(' data-moved="yes"><head></head></html>')


def test_the_one_script_inside_the_page_is_named_by_its_checksum(
    gpt: aa.Atlas, stand_in: Path
) -> None:
    (stand_in / "page.html").write_text("<head><!--ATLAS-EARLY--></head>", encoding="utf-8")
    (stand_in / "early.js").write_text("ask('</script>');\n", encoding="utf-8")
    with TestClient(make_app([gpt]), base_url=HERE) as client:
        page = client.get("/")
    script = r"ask('<\/script>');"
    assert page.text == f"<head><script>{script}</script></head>"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = page.headers["content-security-policy"].split("; ")
    assert f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}'" in rules


def test_the_page_its_files_and_packets_are_served(client: TestClient) -> None:
    assert client.get("/").text == "/* page.html */"
    assert client.get("/page.js").headers["content-type"].startswith("text/javascript")
    about = client.get("/api/about")
    assert about.headers["content-type"] == "application/octet-stream"
    assert unpack(about.content)["model"] == "builtin:gpt"
    assert unpack(client.get("/1/api/input/1").content)["number"] == 1
    assert client.get("/1/").status_code == 200 and client.get("/1/page.css").status_code == 200


def test_it_listens_on_this_machine_only_by_default(gpt: aa.Atlas, stand_in: Path) -> None:
    with launch.start([gpt], port=0) as running:
        assert running.url.startswith("http://127.0.0.1:")
        assert "token" not in running.url
        port = httpx.URL(running.url).port
        assert httpx.get(running.url + "api/about").status_code == 200
        outward = socket.gethostbyname(socket.gethostname())
        if outward != "127.0.0.1":
            with pytest.raises(OSError, match=r".*"):
                socket.create_connection((outward, port or 0), timeout=2).close()


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "evil.example:8642", "localhost:x", ""]
)
def test_a_host_header_of_another_name_is_refused(client: TestClient, name: str) -> None:
    answer = client.get("/api/about", headers={"host": name})
    assert answer.status_code == 421
    assert "error" in unpack(answer.content)


@pytest.mark.parametrize("name", ["localhost:8642", "127.0.0.1", "[::1]:8642"])
def test_its_own_names_are_known(client: TestClient, name: str) -> None:
    assert client.get("/api/about", headers={"host": name}).status_code == 200


def test_a_server_for_all_addresses_still_refuses_names_of_others() -> None:
    guard = Guard.of("0.0.0.0")
    assert guard.token
    assert guard.knows_host("192.0.2.7:80") and guard.knows_host("localhost")
    assert not guard.knows_host("evil.example")


def test_another_host_needs_the_token_on_every_request(guarded: tuple[TestClient, str]) -> None:
    client, token = guarded
    for path in ("/", "/page.js", "/api/about", "/api/about?token=wrong"):
        assert client.get(path).status_code == 403
    assert (
        client.get(
            "/api/about", headers={"cookie": f"{Guard('192.0.2.7', token).cookie}=wrong"}
        ).status_code
        == 403
    )
    assert client.get(f"/api/about?token={token}").status_code == 200


def test_the_link_with_the_token_opens_the_whole_page(guarded: tuple[TestClient, str]) -> None:
    client, token = guarded
    first = client.get(f"/?token={token}")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/page.js").status_code == 200
    assert client.get("/api/about").status_code == 200


def test_answers_are_compressed_for_other_machines_only(
    guarded: tuple[TestClient, str], client: TestClient
) -> None:
    far, token = guarded
    path, asked = "/api/edges/0/decoder", {"accept-encoding": "gzip"}
    there = far.get(f"{path}?token={token}", headers=asked)
    here = client.get(path, headers=asked)
    assert there.headers["content-encoding"] == "gzip" and there.content == here.content
    assert "content-encoding" not in here.headers


def test_a_cookie_that_cannot_be_read_is_no_token(guarded: tuple[TestClient, str]) -> None:
    client, _ = guarded
    assert client.get("/", headers={"cookie": "a b=;;=\x01"}).status_code == 403


def test_a_loopback_server_has_no_token_and_another_has() -> None:
    assert Guard.of("127.0.0.1").token is None and Guard.of("localhost").token is None
    assert Guard.of("192.0.2.7").token != Guard.of("192.0.2.7").token


@pytest.mark.parametrize("path", ["/", "/api/about", "/api/nothing", "/nothing", "/page.js"])
def test_every_answer_has_the_safety_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert re.fullmatch(r"'self' 'wasm-unsafe-eval' 'sha256-[\w+/]+='", policy["script-src"])
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fpyproject.toml",
        "/api/../atlas.json",
        "/api/..%2Fatlas.json",
        "/api/rows/0/..%2f..%2f..%2fetc%2fpasswd",
        "/api//etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/page.html",
        "/widget.js",
        "/1/..%2fpage.html",
        "/api/input/0%00",
    ],
)
def test_no_path_leads_out_of_the_atlas(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert len(answer.content) < 400


def test_what_is_posted_must_be_a_deed(client: TestClient) -> None:
    assert client.post("/api/about", content=b"x").status_code == 400
    assert client.post("/api/about", json={}).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/about", content=b"x").status_code == 405


class Broken:
    """A subject whose every reading fails in a way nobody foresaw."""

    towers: tuple[Any, ...] = ()

    def __len__(self) -> int:
        raise RuntimeError("disk on fire, at /secret/place")

    inputs = tokens = weights = layer_weights = __len__


def test_one_bad_request_never_stops_the_server(
    gpt: aa.Atlas, stand_in: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = Broken()
    with launch.start([gpt, broken], port=0) as running:
        url = running.url
        failed = httpx.get(url + "1/api/about")
        assert failed.status_code == 500
        assert "secret" not in failed.text
        port = httpx.URL(url).port or 0
        for junk in (b"\x00\xff\xfe garbage\r\n\r\n", b"GET / HTTP/1.1\r\nHost:", b""):
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(junk)
        assert httpx.get(url + "api/rows/0/L" + "9" * 9000 + "H0").status_code in (404, 414, 400)
        assert httpx.get(url + "api/about").status_code == 200


def test_a_taken_port_is_told_in_one_sentence(gpt: aa.Atlas, stand_in: Path) -> None:
    with (
        launch.start([gpt], port=0) as running,
        pytest.raises(InputError, match=r"cannot listen at .*; give another --host or --port"),
    ):
        launch.start([gpt], port=httpx.URL(running.url).port)


def test_an_unknown_host_is_told_in_one_sentence(gpt: aa.Atlas, stand_in: Path) -> None:
    with pytest.raises(InputError, match="cannot listen at"):
        launch.start([gpt], host="no such host", port=0)


# Several servers with tokens ---------------------------------------------------------------------


def test_two_servers_with_tokens_on_one_host_keep_their_own_cookies(
    gpt: aa.Atlas, stand_in: Path
) -> None:
    """A browser sends every cookie of a host to all of its ports."""
    jar: dict[str, str] = {}
    guards = [Guard.of("192.0.2.7"), Guard.of("192.0.2.7")]
    apps = [make_app([gpt], guard) for guard in guards]
    for guard, app in zip(guards, apps, strict=True):
        answer = TestClient(app, base_url="http://192.0.2.7").get(f"/?token={guard.token}")
        jar |= dict(answer.cookies)
    assert len(jar) == 2
    header = "; ".join(f"{name}={value}" for name, value in jar.items())
    for app in apps:
        client = TestClient(app, base_url="http://192.0.2.7")
        assert client.get("/api/about", headers={"cookie": header}).status_code == 200


@pytest.mark.parametrize(
    "other",
    ['settings={"a": [1, "b;c"], "d": "e"}', "a b=;;=", "=", "x=é", '"', "a={; b=}", "$Version=1"],
)
def test_cookies_of_other_programs_do_not_keep_the_page_shut(
    guarded: tuple[TestClient, str], other: str
) -> None:
    client, token = guarded
    name = Guard("192.0.2.7", token).cookie
    for header in (f"{other}; {name}={token}", f"{name}={token}; {other}"):
        answer = client.get("/api/about", headers={b"cookie": header.encode()})
        assert answer.status_code == 200, header
    assert client.get("/api/about", headers={b"cookie": other.encode()}).status_code == 403


@pytest.mark.parametrize(
    "token", ["<script>alert(1)</script>", "é", "%00", "x" * 8000, "", "%0d%0aSet-Cookie: a=b"]
)
def test_a_hostile_token_is_refused_and_never_repeated(
    guarded: tuple[TestClient, str], token: str
) -> None:
    client, right = guarded
    answer = client.get(f"/?token={token}")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert b"script" not in answer.content and right.encode() not in answer.content


def test_a_refused_request_sets_no_cookie_and_a_good_one_only_its_own(
    guarded: tuple[TestClient, str],
) -> None:
    client, token = guarded
    assert "set-cookie" not in client.get(f"/nothing?token={token}").headers
    first = client.get(f"/api/about?token={token}")
    again = client.get("/api/about")
    assert "set-cookie" in first.headers and "set-cookie" not in again.headers


# What is too large --------------------------------------------------------------------------------


def test_a_body_that_is_announced_as_huge_is_not_waited_for(gpt: aa.Atlas, stand_in: Path) -> None:
    with launch.start([gpt], port=0) as running:
        port = httpx.URL(running.url).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(
                b"POST /api/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Content-Length: 99999999999\r\n\r\n" + b" " * 300_000
            )
            assert b" 400 " in raw.recv(100)
        assert httpx.get(running.url + "api/about").status_code == 200


def test_a_header_that_never_ends_is_refused(gpt: aa.Atlas, stand_in: Path) -> None:
    with launch.start([gpt], port=0) as running:
        port = httpx.URL(running.url).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000)
            try:
                said = raw.recv(100)
            except ConnectionError:
                said = b""
            assert said == b"" or b" 400 " in said or b" 431 " in said
        assert httpx.get(running.url + "api/about").status_code == 200


def test_an_address_is_not_repeated_as_markup(client: TestClient) -> None:
    for path in ("/<script>x</script>", "/api/<script>", "/api/rows/0/<img src=x>"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"


# Markup in an atlas -------------------------------------------------------------------------------


def test_markup_in_names_columns_and_models_travels_as_text(tmp_path: Path, stand_in: Path) -> None:
    """Packets are JSON and numbers; the browser tests see that the page shows them as text."""
    evil = "</script><img src=x onerror=alert(1)>"
    given = [{"text": f"The cat {evil} sat.", "<b>column</b>": evil}]
    atlas = aa.capture("builtin:gpt", given, path=tmp_path / "<i>x<i>.atlas", progress=False)
    client = TestClient(make_app([atlas]), base_url=HERE)
    for path in ("about", "input/0", "heads", "edges/0/decoder"):
        answer = client.get(f"/api/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert evil[:20] in unpack(client.get("/api/about").content)["inputs"][0]["label"]
