"""The engine of docs/add-an-engine.md imports only what is public, or the page would teach what may change.

That it keeps every promise is shown beside our own engines, in `test_contract.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_finder import find_imports
from tests.support.example_engine import EXAMPLE

PUBLIC = {f"holdfast.{module}" for module in ("engine", "errors", "flow", "model", "ports", "testing")}


def private_imports(source: str) -> list[str]:
    """What a module of the example imports of holdfast that is not for authors of engines."""
    found = [found.module for found in find_imports(source, "holdfast_lockd")]
    return [module for module in found if module.partition(".")[0] == "holdfast" and module not in PUBLIC]


@pytest.mark.parametrize("file", sorted(EXAMPLE.rglob("*.py")), ids=lambda file: file.name)
def test_it_imports_only_what_is_public(file: Path) -> None:
    assert private_imports(file.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from holdfast._core.flow import NOW",
        "from holdfast import _core",
        "from holdfast.backends import queue_backend",
        "def f():\n    import holdfast.sync.driver",
    ],
)
def test_a_private_import_is_found(source: str) -> None:
    assert private_imports(source)
