"""Writes the page: its parts are files in their own languages, put together into one."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ...errors import Misconfigured
from ..checkers import Judgement
from ..history import History, Run
from ..history_reader import export
from .data import pack, run_data

SCRIPTS = ("model.js", "view.js", "density.js", "timeline.js", "overview.js", "panels.js", "legend.js", "main.js")
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def write_report(path: Path | str, runs: Sequence[tuple[History, Judgement]]) -> list[Path]:
    """Write `out.html`, the verdicts `out.json`, a history `out-<number>-….jsonl` for each run. What was written."""
    page = Path(path)
    if page.suffix != ".html":
        raise Misconfigured(f"a report is a page, and {page.name!r} does not end with .html; name it out.html")
    histories = [_write_history(page, number, history) for number, (history, _) in enumerate(runs, 1)]
    verdicts = page.with_suffix(".json")
    data = [{**judgement.as_data(), "history": file.name} for (_, judgement), file in zip(runs, histories, strict=True)]
    verdicts.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    packed = [pack(run_data(history, judgement)) for history, judgement in runs]
    page.write_text(render([history.run for history, _ in runs], packed), encoding="utf-8")
    return [page, verdicts, *histories]


def render(runs: Sequence[Run], packed: Sequence[str]) -> str:
    """The page as text."""
    engines = ", ".join(dict.fromkeys(run.engine for run in runs)) or "nothing"
    parts = {
        "title": escape(f"holdfast torture: {engines}"),
        "style": _part("page.css"),
        "script": "\n".join(_part(name) for name in SCRIPTS),
        "data": json.dumps(packed),
    }
    return _PLACE.sub(lambda location: parts[location[1]], _part("page.html"))


def _write_history(page: Path, number: int, history: History) -> Path:
    words = "-".join(word for word in (history.run.engine, history.run.scenario, history.run.discipline) if word)
    file = page.with_name(f"{page.stem}-{number}-{re.sub(r'[^A-Za-z0-9.]+', '-', words)}.jsonl")
    with file.open("w", encoding="utf-8") as lines:
        for line in export(history):
            lines.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    return file


def _part(name: str) -> str:
    data = pkgutil.get_data(__package__, name)
    if data is None:
        raise Misconfigured(f"{name} is missing beside {__name__}; install holdfast anew")
    return data.decode()
