"""The examples in the fences' docstrings run as written."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import holdfast.fenced

MODULES = [found.name for found in pkgutil.walk_packages(holdfast.fenced.__path__, "holdfast.fenced.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_fences_have_examples() -> None:
    found = doctest.DocTestFinder().find(holdfast.fenced.SQLiteFence) + doctest.DocTestFinder().find(
        holdfast.fenced.FencedFile
    )
    assert sum(len(test.examples) for test in found) >= 10
