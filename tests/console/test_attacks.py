"""Whoever should not read or change anything, does not: each attack is tried, over real HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.console.sessions import MAX_GUESSES_COUNT, MAX_SESSIONS_COUNT, ConsoleSessions
from holdfast.errors import Misconfigured
from tests.cli.harness import LONG
from tests.console.served import SECRET, Served, served

URL = "memory://console-attacks"
DATA = ("status", "locks", "lock?name=x", "partitions", "elections", "limits", "metrics", "health", "stream")


@pytest.fixture
def locks() -> Iterator[holdfast.Coordinator]:
    with holdfast.connect(URL) as locks:
        yield locks


@pytest.fixture
def reader(locks: holdfast.Coordinator) -> Iterator[Served]:
    """As it is by default: no secret, nothing can be changed."""
    with served(locks, URL) as console:
        yield console


@pytest.fixture
def writer(locks: holdfast.Coordinator) -> Iterator[Served]:
    with served(locks, URL, secret=SECRET, writable=True, hosts=frozenset({"console.example"})) as console:
        yield console


def test_a_site_that_points_its_name_here_is_refused(reader: Served) -> None:
    for host in ("evil.example", f"evil.example:{reader.port}", "127.0.0.1.evil.example", "localhost.evil.example"):
        for path in ("/", "/api/locks", "/api/session", "/page/main.js"):
            answer = reader.get(path, Host=host)
            assert answer.status == 421, (host, path)
            assert "not known as" in answer.json["problem"]
    for host in ("", "a b", "localhost@evil.example", "localhost/", "[::1"):
        assert reader.get("/api/locks", Host=host).status in (400, 421), host


def test_addresses_localhost_and_names_that_were_allowed_are_served(reader: Served, writer: Served) -> None:
    for host in ("localhost", "127.0.0.1:9", "[::1]:8484", "LOCALHOST:1"):
        assert reader.get("/api/locks", Host=host).status == 200, host
    assert writer.get("/api/session", Host="Console.example:8484").status == 200
    assert reader.get("/api/session", Host="console.example").status == 421


def test_by_default_nothing_can_be_changed(locks: holdfast.Coordinator, reader: Served) -> None:
    with locks.lock("x") as lease:
        for path in ("/api/evict", "/api/ask"):
            body = {"name": "x", "token": lease.token}
            answer = reader.ask("POST", path, body, Origin=reader.url, Authorization=f"Bearer {SECRET}")
            assert answer.status == 403
            assert "--allow-write" in answer.json["problem"]
        assert reader.ask("POST", "/api/session", {"secret": ""}, Origin=reader.url).status == 401
        assert locks.survey("x")[0].holders[0].token == lease.token


def test_with_a_secret_nothing_is_told_without_it(writer: Served) -> None:
    for path in DATA:
        assert writer.get(f"/api/{path}").status == 401, path
        assert writer.get(f"/api/{path}", Cookie=f"holdfast-console-{writer.port}=guess").status == 401, path
    assert writer.get("/api/session").json == {"required": True, "signed_in": False, "csrf": None, "writable": True}
    assert writer.get("/").status == 200  # the page holds no data: it asks for the secret


def test_whoever_signs_in_reads_and_signs_out_again(writer: Served) -> None:
    headers = writer.sign_in()
    cookie = {"Cookie": headers["Cookie"]}
    assert writer.get("/api/locks", **cookie).status == 200
    assert writer.get("/api/session", **cookie).json["csrf"] == headers["X_CSRF_Token"]
    assert writer.ask("DELETE", "/api/session", Cookie=headers["Cookie"]).status == 403  # not from another site
    assert writer.ask("DELETE", "/api/session", **headers).status == 200
    assert writer.get("/api/locks", **cookie).status == 401


def test_the_cookie_is_for_this_page_only(writer: Served) -> None:
    plain = writer.ask("POST", "/api/session", {"secret": SECRET}, Origin=writer.url).headers["set-cookie"].lower()
    assert "httponly" in plain
    assert "samesite=strict" in plain
    behind_tls = writer.ask("POST", "/api/session", {"secret": SECRET}, Origin=f"https://{writer.host}")
    assert "secure" in behind_tls.headers["set-cookie"].lower()
    assert SECRET not in plain


def test_an_eviction_needs_session_origin_csrf_and_the_token_of_the_hold(
    locks: holdfast.Coordinator, writer: Served
) -> None:
    lease = locks.lock("x", ttl=30).acquire()
    right = writer.sign_in()
    body = {"name": "x", "token": str(lease.token)}
    wrong = {
        "no session": right | {"Cookie": ""},
        "another session": right | {"Cookie": f"holdfast-console-{writer.port}=guess"},
        "no origin": {key: value for key, value in right.items() if key != "Origin"},
        "another site": right | {"Origin": "http://evil.example"},
        "another port": right | {"Origin": f"http://127.0.0.1:{writer.port + 1}"},
        "a sandbox": right | {"Origin": "null"},
        "a page of another site": right | {"Sec_Fetch_Site": "cross-site"},
        "a page of another port": right | {"Sec_Fetch_Site": "same-site"},
        "no CSRF token": {key: value for key, value in right.items() if key != "X_CSRF_Token"},
        "an empty CSRF token": right | {"X_CSRF_Token": ""},
        "a guessed CSRF token": right | {"X_CSRF_Token": "guess"},
    }
    for what, headers in wrong.items():
        assert writer.ask("POST", "/api/evict", body, **headers).status in (401, 403), what
    for token in (None, "", "x", 0, -1, 1.5, True, "9" * 100, [lease.token]):
        assert writer.ask("POST", "/api/evict", {"name": "x", "token": token}, **right).status == 400, token
    for name in (None, "", 7, "x" * 600, "a\nb"):
        assert writer.ask("POST", "/api/evict", body | {"name": name}, **right).status == 400, name
    other = writer.ask("POST", "/api/evict", {"name": "x", "token": lease.token + 1}, **right)
    assert other.json["evicted"] is False
    lease.check()  # it still holds
    assert writer.ask("POST", "/api/evict", body, **right).json["evicted"] is True
    writer.seen()
    timeline = writer.get("/api/lock?name=x", Cookie=right["Cookie"]).json["timeline"]
    assert [hold["outcome"] for hold in timeline["holds"]] == ["evicted"]
    assert [mark["kind"] for mark in timeline["marks"]] == ["evicted"]
    assert not locks.survey("x")


def test_a_program_may_send_the_secret_itself(locks: holdfast.Coordinator, writer: Served) -> None:
    right = {"Authorization": f"Bearer {SECRET}"}
    assert writer.get("/api/locks", **right).status == 200
    assert writer.get("/api/locks", Authorization="Bearer wrong").status == 401
    body = {"name": "x", "token": 1}
    assert writer.ask("POST", "/api/evict", body, **right).json["evicted"] is False
    assert writer.ask("POST", "/api/evict", body, **right, Origin="http://evil.example").status == 403


def test_a_form_of_another_site_cannot_post(writer: Served) -> None:
    right = writer.sign_in()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = writer.ask("POST", "/api/evict", b'{"name":"x","token":1}', **right, Content_Type=kind)
        assert answer.status == 415, kind
    for body in (b"", b"[]", b"{", b"[" * 5000, b"\xff"):
        assert writer.ask("POST", "/api/evict", body, **right).status == 400, body[:10]
    assert writer.ask("POST", "/api/evict", b"x" * 20_000, **right).status == 413


def test_signing_in_needs_the_own_page_too(writer: Served) -> None:
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": writer.url, "Sec_Fetch_Site": "cross-site"}):
        assert writer.ask("POST", "/api/session", {"secret": SECRET}, **headers).status == 403


def test_guessing_is_stopped_and_disturbs_nobody_who_is_in(writer: Served) -> None:
    cookie = writer.sign_in()["Cookie"]
    for _ in range(MAX_GUESSES_COUNT):
        assert writer.ask("POST", "/api/session", {"secret": "wrong"}, Origin=writer.url).status == 401
    for headers in ({"Authorization": f"Bearer {SECRET}"}, {"Authorization": "Bearer wrong"}):
        assert writer.get("/api/locks", **headers).status == 429
    assert writer.ask("POST", "/api/session", {"secret": SECRET}, Origin=writer.url).status == 429
    assert writer.get("/api/locks", Cookie=cookie).status == 200


def test_guesses_and_sessions_are_forgotten_in_time() -> None:
    time = [0.0]
    sessions = ConsoleSessions(SECRET, lambda: time[0])
    assert not any(sessions.knows("wrong") for _ in range(MAX_GUESSES_COUNT))
    assert not sessions.knows(SECRET)
    time[0] = 61.0
    assert sessions.knows(SECRET)
    first = sessions.begin()
    assert sessions.get(first.id) == first
    time[0] += 13 * 3600
    assert sessions.get(first.id) is None
    many = [sessions.begin() for _ in range(MAX_SESSIONS_COUNT + 1)]
    assert sessions.get(many[0].id) is None
    assert sessions.get(many[-1].id) is not None


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(Misconfigured, match="fewer than 12 bytes"):
        ConsoleSessions("hunter2")


def test_no_path_leads_out_of_the_page(reader: Served) -> None:
    for path in (
        *(
            "/page/../guard.py",
            "/page/..%2fguard.py",
            "/page/%2e%2e/guard.py",
            "/page//etc/passwd",
            "/page/main.js/../x",
        ),
        *(
            "/page/",
            "/page",
            "/../../etc/passwd",
            "/page/..\\guard.py",
            "/page/index.html%00.js",
            "/api/",
            "/api/../page",
        ),
    ):
        answer = reader.get(path)
        assert answer.status in (404, 307), path
        assert b"import" not in answer.body


def test_every_answer_has_the_headers_that_keep_a_browser_in_check(reader: Served) -> None:
    answers = [reader.get(path) for path in ("/", "/page/main.js", "/api/locks", "/nowhere", "/api/locks?limit=x")]
    answers += [reader.get("/", Host="evil.example"), reader.ask("POST", "/api/locks"), reader.ask("PUT", "/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_has_no_script_and_no_style_of_its_own(reader: Served) -> None:
    page = reader.get("/").body.decode()
    assert "<script>" not in page
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.replace(" one", "").replace(" only", "")
    assert "http://" not in page + reader.get("/page/console.css").body.decode()
    assert "https://" not in page + reader.get("/page/console.css").body.decode()


def test_a_session_that_has_ended_ends_its_stream(writer: Served) -> None:
    headers = writer.sign_in()
    with socket.create_connection(("127.0.0.1", writer.port), timeout=LONG) as stream:
        words = f"GET /api/stream HTTP/1.1\r\nHost: {writer.host}\r\nCookie: {headers['Cookie']}\r\n\r\n"
        stream.sendall(words.encode())
        lines = stream.makefile("rb")
        assert b"200" in lines.readline()
        assert writer.ask("DELETE", "/api/session", **headers).status == 200
        for _ in lines:  # it ends by itself
            if _ == b"0\r\n":
                break
        else:
            pytest.fail("the stream was cut")
