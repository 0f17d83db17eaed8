"""`python -m bench`: measure one engine, print the tables, write Markdown, JSON and a plot."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

from bench import registry
from bench.model import GROWTH, MEASURES
from bench.outcomes import Report
from bench.report import plot, tables, text
from bench.run import run
from bench.run_length import FULL, QUICK
from bench.verdicts import Verdict, judge

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    engine = registry.engine(options.engine)
    report = run(engine, options.only, QUICK if options.quick else FULL, peers=not options.no_peers)
    verdicts = judge(report, engine.limits)
    drawn = tables.tables(report, engine, verdicts)
    for table in drawn:
        print(text.plain(table))
    print(f"{report.mode} run of {report.seconds:.0f} s on {_where(report)}")
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / f"{engine.name}.png"
    no_plot = plot.draw(report, picture)
    page = options.out / f"{engine.name}.md"
    page.write_text(_page(report, drawn, picture if no_plot is None else None), encoding="utf-8")
    written = [page] if no_plot else [page, picture]
    if options.json:
        options.json.write_text(json.dumps(as_data(report, verdicts), indent=1) + "\n", encoding="utf-8")
        written.append(options.json)
    print(f"written: {', '.join(str(path) for path in written)}" + (f" ({no_plot})" if no_plot else ""))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--engine", choices=registry.engine_names(), default="sqlite")
    words = f"some of {','.join(MEASURES)}; growth stands for {','.join(GROWTH)}"
    parser.add_argument("--only", type=_measures, default=MEASURES, help=words)
    parser.add_argument("--quick", action="store_true", help="a rough answer in under a minute")
    parser.add_argument("--no-peers", action="store_true", help="holdfast and the bare engine only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as JSON too")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="for the Markdown and the plot")
    return parser.parse_args(arguments)


def _measures(text: str) -> tuple[str, ...]:
    wanted = tuple(each for word in text.split(",") for each in (GROWTH if word == "growth" else (word,)))
    if unknown := set(wanted) - set(MEASURES):
        known = ", ".join(MEASURES)
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {known}, growth")
    return wanted


def _where(report: Report) -> str:
    return ", ".join(f"{key} {value}" for key, value in report.environment.items())


def _page(report: Report, drawn: list[text.Table], picture: Path | None) -> str:
    parts = [
        f"# holdfast on {report.engine}\n",
        f"One {report.mode} run of {report.seconds:.0f} s on {_where(report)}.",
        "Ratios of one run hold; absolute figures do not. [How to read it](../../docs/bench.md).\n",
    ]
    if picture:
        parts.append(f"![{report.engine}]({picture.name})\n")
    return "\n".join([*parts, *(text.markdown(table) for table in drawn)])


def as_data(report: Report, verdicts: list[Verdict]) -> dict[str, Any]:
    """The report for JSON, which has no NaN."""
    found = {**dataclasses.asdict(report), "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts]}
    return {key: _clean(value) for key, value in found.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    sys.exit(main())
