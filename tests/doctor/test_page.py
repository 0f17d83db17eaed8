"""docs/doctor.md has every check of the catalogue, in its words."""

from __future__ import annotations

from pathlib import Path

from holdfast.doctor.finding import catalogue
from holdfast.doctor.page import ENGINES, MARK, tables

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


def test_the_page_is_made_of_the_catalogue() -> None:
    assert PAGE.read_text("utf-8").partition(MARK)[2].strip() == tables().strip()


def test_every_check_is_on_the_page() -> None:
    assert {check_id.partition(".")[0] for check_id in catalogue()} <= set(ENGINES)
