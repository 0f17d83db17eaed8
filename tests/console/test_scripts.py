"""The scripts of the page that need no page: V8 runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

import holdfast.console
from holdfast.console.api import FILES

PAGE = Path(holdfast.console.__file__).parent / "page"
PARAMS = """
class URLSearchParams {  // as much of a browser's as the page uses
  constructor(given) {
    const read = (text) => text.split("&").filter(Boolean).map((pair) => pair.split("=").map(decodeURIComponent));
    this.pairs = typeof given === "string" ? read(given) : given;
  }
  [Symbol.iterator]() { return this.pairs[Symbol.iterator](); }
  toString() { return this.pairs.map((pair) => pair.map(encodeURIComponent).join("=")).join("&"); }
}
"""
Page = Callable[[str], Any]


@pytest.fixture(scope="module")
def page() -> Page:
    racer = MiniRacer()
    racer.eval(PARAMS)
    racer.eval((PAGE / "format.js").read_text())
    return lambda expression: json.loads(str(racer.eval(f"JSON.stringify({expression})")))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(("0", "0.0 s"), ("9.94", "9.9 s"), ("59.9", "59 s"), ("200", "3 m 20 s"), ("7500", "2 h 5 m")),
        *(("90000", "1 d 1 h"), ("null", "–"), ("-1", "0.0 s")),
    ],
)
def test_durations_read_as_in_the_command_line(page: Page, value: str, text: str) -> None:
    assert page(f"seconds({value})") == text


def test_a_bar_changes_colour_at_a_half_and_at_a_fifth(page: Page) -> None:
    assert page("[1, 0.5, 0.49, 0.2, 0.19, 0].map(levelOf)") == ["good", "good", "fair", "fair", "bad", "bad"]
    assert page("levelOf(leftOf(5, 0))") == "none"
    assert page("levelOf(leftOf(null, 10))") == "none"
    assert page("leftOf(12, 10)") == 1


def test_a_figure_beyond_its_limit_is_beyond_the_mark(page: Page) -> None:
    for limit in (0.5, 0.3, 0.8, 0.05):
        below, above = page(f"[gauge({limit} * 0.9, {limit}), gauge({limit} * 1.1, {limit})]")
        assert below["value"] < below["limit"] < above["value"] <= 1
    assert page("gauge(1, 0).value") == 1
    assert page("gauge(null, 0.5).value") == 0


def test_holds_that_overlap_are_drawn_below_each_other(page: Page) -> None:
    holds = [{"begin": 0, "end": 5}, {"begin": 3, "end": 9}, {"begin": 5, "end": 6}, {"begin": 7, "end": None}]
    assert page(f"laneOf({json.dumps(holds)}, 10, 8)") == [0, 1, 0, 0]
    assert page(f"laneOf({json.dumps([{'begin': 0, 'end': None}] * 20)}, 10, 8)")[-1] == 7


def test_an_axis_has_few_and_round_times(page: Page) -> None:
    for length in (5, 61, 3600, 86400 * 30):
        ticks = page(f"ticksOf(1000, 1000 + {length}, 8)")
        assert 1 <= len(ticks) <= 9
        assert ticks == sorted(ticks)


@pytest.mark.parametrize("name", ["a/b", "<b>&?#=%", "日本語", "a+b c", "a?b=c&d"])
def test_a_name_survives_the_address_bar(page: Page, name: str) -> None:
    assert page(f"parseAddress(addressOf('lock', {{name: {json.dumps(name)}, offset: 0}}))") == {
        "view": "lock",
        "query": {"name": name},
    }


def test_every_file_of_the_page_is_served_and_every_script_is_loaded() -> None:
    assert {file.name for file in PAGE.iterdir()} == set(FILES)
    loaded = (PAGE / "index.html").read_text()
    assert [name for name in FILES if name.endswith((".js", ".css")) and f'"/page/{name}"' not in loaded] == []


def test_no_script_makes_html_of_a_text() -> None:
    for file in PAGE.glob("*.js"):
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in file.read_text(), file.name
