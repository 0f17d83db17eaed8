"""Bad input is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.log import ANY, EventData, append, fold, read
from tests.log.test_append import events

BAD = [
    ("", EventData("t"), ANY),
    ("a\nb", EventData("t"), ANY),
    ("x" * 401, EventData("t"), ANY),
    (7, EventData("t"), ANY),
    ("s", [], ANY),
    ("s", None, ANY),
    ("s", ["t"], ANY),
    ("s", EventData(""), ANY),
    ("s", EventData("t", object()), ANY),
    ("s", EventData("t", float("nan")), ANY),
    ("s", EventData("t", "x" * 1_100_000), ANY),
    ("s", [EventData("t", "x" * 1_000_000) for _ in range(9)], ANY),
    ("s", [EventData("t") for _ in range(1001)], ANY),
    ("s", EventData("t", id=""), ANY),
    ("s", EventData("t", id="x" * 201), ANY),
    ("s", events("a", "a"), ANY),
    ("s", EventData("t"), -1),
    ("s", EventData("t"), True),
    ("s", EventData("t"), "1"),
    ("s", EventData("t"), None),
    ("s", EventData("t"), 2**63),
]


@pytest.mark.parametrize(("stream", "what", "expected"), BAD)
def test_bad_input_is_refused_before_anything_is_sent(tmp_path: Any, stream: Any, what: Any, expected: Any) -> None:
    import sqlite3

    sent: list[str] = []
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.set_trace_callback(sent.append)
    with pytest.raises(Misconfigured):
        append(connection, stream, what, expected=expected)
    with pytest.raises(Misconfigured):
        append(connection, "s", EventData("t"), expected=ANY, lease=0)
    assert sent == []
    connection.close()


def test_other_bad_input(tmp_path: Any) -> None:
    import sqlite3

    from holdfast.log import Position, tail, truncate, truncate_log

    async def later(state: int, event: object) -> int:
        return state

    connection = sqlite3.connect(tmp_path / "x.db")
    for call in (
        lambda: read(connection, "s", after=-1),
        lambda: read(connection, "s", limit=0),
        lambda: read(connection, "s", limit=10**9),
        lambda: tail(connection, after="1-2"),  # type: ignore[arg-type]
        lambda: tail(connection, after=Position(-1, 0)),
        lambda: tail(connection, after=7),  # type: ignore[arg-type]
        lambda: truncate(connection, "s", before=1.5),  # type: ignore[arg-type]
        lambda: truncate_log(connection, before=3),  # type: ignore[arg-type]
        lambda: fold(connection, "s", lambda s, e: s, 0, snapshot=""),
        lambda: fold(connection, "s", lambda s, e: s, 0, every=0),
        lambda: fold(connection, "s", later, 0),  # type: ignore[arg-type]
        lambda: fold(connection, "s", None, 0),  # type: ignore[arg-type]
        lambda: Position.parse("12"),
        lambda: Position.parse("9" * 5000 + "-1"),
        lambda: Position.parse(7),  # type: ignore[arg-type]
        lambda: append(object(), "s", EventData("t"), expected=ANY),
    ):
        with pytest.raises(Misconfigured):
            call()
    connection.close()
