"""connect(): bad input is refused at once and by name, and nothing but the file of the user is ever guessed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable, Misconfigured
from holdfast.settings import default_url

NAN, INFINITE = float("nan"), float("inf")


def blocking(*args: Any, **options: Any) -> None:
    holdfast.connect(*args, **options).close()


def awaited(*args: Any, **options: Any) -> None:
    async def main() -> None:
        await (await holdfast.aio.connect(*args, **options)).close()

    asyncio.run(main())


BAD: list[tuple[str, dict[str, Any]]] = [
    *(("ttl", {"ttl": bad}) for bad in (0, -1, NAN, INFINITE, "10", None, True)),
    *(("timeout", {"timeout": bad}) for bad in (-1, NAN, INFINITE, "10", True)),
    *(("request_timeout", {"request_timeout": bad}) for bad in (0, -1, NAN, INFINITE, "10", None, True)),
    *(("namespace", {"namespace": bad}) for bad in ("", "a/b", "a\nb", "n" * 600, 7, None)),
    *(("require", {"require": bad}) for bad in (["speed"], "speed", {"luck"})),
    ("durable", {"require": ["durable"]}),
    *(("on_event", {"on_event": bad}) for bad in (3, "print")),
]


@pytest.mark.parametrize("connect", [blocking, awaited])
@pytest.mark.parametrize(("what", "options"), BAD, ids=lambda value: str(value)[:40])
def test_bad_options_are_refused_by_name(connect: Callable[..., None], what: str, options: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured, match=what):
        connect("memory://bad", **options)


@pytest.mark.parametrize("connect", [blocking, awaited])
@pytest.mark.parametrize(
    "url",
    [
        *(
            "locks.db",
            "/tmp/locks.db",
            "://x",
            "nosuch://x",
            " memory://x",
            "memory://x?y=1",
            "sqlite://",
            "sqlite:///",
        ),
        *("sqlite:///tmp/x.db?mode=ro", "sqlite:///:memory:", "sqlite://:memory:", "sqlite:///tmp/a%00b.db"),
        *("sqlite:///tmp/", 7, b"memory://", object()),
    ],
)
def test_bad_urls_are_refused(connect: Callable[..., None], url: Any) -> None:
    with pytest.raises(Misconfigured) as caught:
        connect(url)
    named = url.partition("://")[0] if isinstance(url, str) else repr(url)
    assert repr(named).strip("'\"") in str(caught.value)


@pytest.mark.parametrize("connect", [blocking, awaited])
def test_a_promise_that_nobody_knows_is_refused_before_anything_is_sent(connect: Callable[..., None]) -> None:
    with pytest.raises(Misconfigured, match="'durabel'"):
        connect("redis://127.0.0.1:1", require={"durabel"})


def test_permits_are_refused_by_the_name_they_were_given_by() -> None:
    with holdfast.connect("memory://bad") as locks, pytest.raises(Misconfigured, match="permits of 'pool'"):
        locks.semaphore("pool", permits=0)


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(Misconfigured, match=r"nosuch.*memory.*sqlite"):
        holdfast.connect("nosuch://x")


@pytest.mark.parametrize(
    ("slip", "meant"), [("rediss+cluster", "redis+cluster"), ("zookeper", "zookeeper"), ("SQLITE", "sqlite")]
)
def test_a_slip_in_a_scheme_gets_a_hint(slip: str, meant: str) -> None:
    with pytest.raises(Misconfigured, match=rf"did you mean {re.escape(meant)}://\?"):
        holdfast.connect(f"{slip}://x")


def test_a_connection_of_asyncio_that_was_not_awaited_says_so() -> None:
    with pytest.raises(Misconfigured, match=r"async with holdfast\.aio\.connect"):
        holdfast.aio.connect("memory://x").lock("a")
    assert not hasattr(holdfast.aio.connect("memory://x"), "nosuch")


def test_a_misspelt_option_is_a_type_error_as_everywhere() -> None:
    with pytest.raises(TypeError, match="time_out"):
        holdfast.connect("memory://x", time_out=3)  # type: ignore[call-arg]


def test_require_takes_one_or_several() -> None:
    for require in ("fencing", ["fencing", "shared"], frozenset({"linearizable"}), ()):
        holdfast.connect("memory://x", require=require).close()


def test_the_url_of_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite://{tmp_path}/env.db")
    with holdfast.connect() as locks:
        assert locks.url == f"sqlite://{tmp_path}/env.db"
    assert (tmp_path / "env.db").exists()
    with holdfast.connect("memory://x") as locks:
        assert locks.url == "memory://x"


def test_without_one_it_is_a_file_in_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home with space"))
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr("sys.platform", "linux")
    assert default_url().endswith("/.local/state/holdfast/locks.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with holdfast.connect() as locks, locks.lock("a"):
        assert (tmp_path / "state" / "holdfast" / "locks.db").exists()
    assert (tmp_path / "state" / "holdfast").stat().st_mode & 0o077 == 0, "others can look into the folder"


def test_a_path_with_signs_is_quoted(tmp_path: Path) -> None:
    with holdfast.connect(f"sqlite://{tmp_path}/a%20b%3F%23.db") as locks, locks.lock("a"):
        assert (tmp_path / "a b?#.db").exists()


@pytest.mark.parametrize("connect", [blocking, awaited])
def test_a_file_that_is_something_else_is_called_so(connect: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("Tyger Tyger, burning bright,\n" * 100)
    with pytest.raises(BackendUnavailable, match=r"poem\.txt"):
        connect(f"sqlite://{tmp_path}/poem.txt")
    assert (tmp_path / "poem.txt").read_text().startswith("Tyger")


@pytest.mark.parametrize("connect", [blocking, awaited])
def test_a_folder_in_its_place_is_called_so(connect: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "locks.db").mkdir()
    with pytest.raises(BackendUnavailable, match=r"locks\.db"):
        connect(f"sqlite://{tmp_path}/locks.db")
