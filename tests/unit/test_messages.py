"""docs/troubleshooting.md has every message that users can see."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import testing
from tools.messages import MARK, PAGE, SOURCE, UNSEEN, VARIABLE, collect, error_classes, plain, tables

PATTERNS = [
    re.compile(".*".join(re.escape(part) for part in message.text.split(VARIABLE)), re.DOTALL) for message in collect()
]


def words() -> str:
    """The page without what Markdown needs."""
    return re.sub(r"\\(.)", r"\1", PAGE.read_text("utf-8"))


def test_the_tables_are_made_of_the_source() -> None:
    assert PAGE.read_text("utf-8").partition(MARK)[2].strip() == tables().strip(), "run: make generate"


def test_every_text_of_an_error_is_on_the_page() -> None:
    """Looked for by its longest piece, in another way than the tables are made."""
    page, errors, missing = words(), error_classes(), []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).as_posix().startswith(UNSEEN):
            continue
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in errors or not call.args:
                continue
            pieces = [
                plain(each.value)
                for each in ast.walk(call.args[0])
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.count(" ") > 2
            ]
            if pieces and (longest := max(pieces, key=len)) not in page:
                missing.append(f"{path.name}:{call.lineno}: {longest}")
    assert not missing


def closed() -> None:
    with holdfast.connect("memory://") as locks:
        pass
    locks.lock("door").acquire()


def refused() -> None:
    with holdfast.connect("memory://") as locks, locks.lock("door") as lease:
        testing.lose(lease, "evicted")
        lease.check()


def taken() -> None:
    with holdfast.connect("memory://") as locks, locks.lock("door"):
        locks.lock("door").acquire(timeout=0)


@pytest.mark.parametrize(
    "fail",
    [
        lambda: holdfast.connect("nowhere://"),
        lambda: holdfast.connect("redis://127.0.0.1:1"),
        lambda: holdfast.connect("redlock://one,two"),
        lambda: holdfast.connect("memory://", ttl=-1),
        lambda: holdfast.connect("memory://", require=["magic"]),
        lambda: holdfast.connect("memory://").lock_all([]),
        lambda: holdfast.connect("memory://").lock(""),
        lambda: holdfast.connect("memory://").limiter("a", "often"),
        closed,
        refused,
        taken,
    ],
)
def test_what_is_raised_is_found(fail: Callable[[], object]) -> None:
    with pytest.raises(holdfast.HoldfastError) as caught:
        fail()
    assert any(pattern.fullmatch(" ".join(str(caught.value).split())) for pattern in PATTERNS), caught.value


def test_the_page_names_every_error_and_links_every_alert() -> None:
    page = PAGE.read_text("utf-8").partition(MARK)[0]
    tree = {"HoldfastError", "Misconfigured", "Missing", "NoAnswer", "InboxFull", "AttemptInProgress", "AttemptFailed"}
    assert not [name for name in error_classes() - tree if f"`{name}`" not in page and name not in page]
    alerts = {path.stem for path in (Path(PAGE).parent / "runbooks").glob("*.md")}
    assert not [alert for alert in alerts - {"HoldfastHoldTooLong", "HoldfastTimeouts"} if alert not in page]
