"""`holdfast torture`: real engines, real processes, real faults; what held and what did not."""

from __future__ import annotations

import random
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import Misconfigured
from . import exit_codes
from .options import json_option, print_json

if TYPE_CHECKING:
    from ..torture.run import Plan, RunResult
    from ..torture.scenarios import ScenarioResult


@click.command()
@click.argument("engines", nargs=-1, metavar="[ENGINE]...")
@click.option("--minutes", default=10.0, show_default=True, help="Length of the run on each engine.")
@click.option("--faults", metavar="NAMES", help="Only these faults, separated by commas (see --list).  [default: all]")
@click.option("--seed", type=int, help="Seed of the fault schedule.  [default: a new one, which is printed]")
@click.option("--ttl", type=float, help="The ttl of the locks, in seconds.  [default: depends on the engine]")
@click.option("--clients", default=3, show_default=True, help="Client processes for each of the three disciplines.")
@click.option("--at-once", default=2, show_default=True, help="How many engines run in parallel.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with the histories.")
@click.option("--scenario", metavar="NAMES", help="Run these classic failures instead, separated by commas; or all.")
@click.option("--times", default=1, show_default=True, type=click.IntRange(min=1), help="Runs of each scenario.")
@click.option("--guarantees", type=click.Path(dir_okay=False, path_type=Path), help="Write the scenarios' outcomes.")
@click.option("--once", is_flag=True, help="Torture 'once' instead: effects, behind the fence and without it.")
@click.option("--actors", is_flag=True, help="Torture actors instead: what becomes of their messages.")
@click.option("--partitions", is_flag=True, help="Torture partitions instead: who owns and writes to a shard.")
@click.option("--log", is_flag=True, help="Torture the event log instead: appends, the tail and consumers.")
@click.option("--url", metavar="URL", help="A server of your own: faults are injected into clients only.")
@click.option("--list", "listing", is_flag=True, help="List the engines, faults and scenarios.")
@json_option
def torture(
    engines: tuple[str, ...],
    minutes: float,
    faults: str | None,
    seed: int | None,
    ttl: float | None,
    clients: int,
    at_once: int,
    report: Path | None,
    scenario: str | None,
    times: int,
    guarantees: Path | None,
    once: bool,
    actors: bool,
    partitions: bool,
    log: bool,
    url: str | None,
    listing: bool,
    as_json: bool,
) -> int:
    """See what holds under real faults, on throw-away engines of this machine.

    Starts each ENGINE (default: all) on free ports, and processes that read and write a resource under its locks,
    unfenced and fenced; stops, kills, cuts off and confuses them; then checks every operation. Two verdicts for each
    engine: mutual exclusion, which no lease can keep under pauses, and the fenced resource, which must hold. Ctrl-C
    ends early.

    \b
    Examples:
      holdfast torture redis --minutes 1
      holdfast torture postgresql --faults pause-aimed,kill-node,failover --seed 7 --report out.html
      holdfast torture --scenario gc-pause,failover-async redis
      holdfast torture --url redis://staging.example.com
      holdfast torture --once redis --minutes 0.5
      holdfast torture --actors redis --minutes 0.5
      holdfast torture --partitions etcd --minutes 1
      holdfast torture --log postgresql --minutes 1
      holdfast torture --list
    """
    from ..torture.engines import STARTERS
    from ..torture.faults import chosen
    from ..torture.run import Plan

    if listing:
        return _list(as_json)
    _check_engines(engines, url)
    wanted = {"once": once, "actors": actors, "partitions": partitions, "log": log}
    if effects := [name for name, is_wanted in wanted.items() if is_wanted]:
        from .torture_effects import run_and_show

        return run_and_show(effects, engines, minutes * 60, seed, as_json)
    if scenario is not None:
        return _scenarios(engines or tuple(STARTERS), scenario, times, guarantees, as_json)
    plan = Plan(
        seconds=minutes * 60,
        seed=random.randrange(1, 1_000_000) if seed is None else seed,
        kinds=tuple(chosen(faults)),
        clients=clients,
        ttl=ttl,
    )
    with tempfile.TemporaryDirectory(prefix="holdfast-histories-") as folder, _terminable():
        results = _run(engines or tuple(STARTERS), plan, Path(folder), url, at_once, as_json)
        if report is not None:
            from ..torture.report import write_report

            write_report(report, [trial for result in results for trial in result.trials])
    _print_results(results, as_json)
    return exit_codes.OK if all(result.passed for result in results) else exit_codes.FAILED


def _check_engines(engines: Sequence[str], url: str | None) -> None:
    from ..torture.engines import STARTERS

    if url is not None and engines:
        raise Misconfigured("give engines to start, or --url of a server of your own, not both")
    for engine in engines:
        if engine not in STARTERS:
            raise Misconfigured(f"torture cannot start an engine {engine!r}; it can: {', '.join(STARTERS)}")


def _run(
    engines: Sequence[str], plan: Plan, folder: Path, url: str | None, at_once: int, as_json: bool
) -> list[RunResult]:
    from ..torture.run import torture as run
    from ..torture.run.display import Display, live_table
    from ..torture.run.parallel import torture_all
    from .views import console

    names = engines if url is None else [url.partition("://")[0]]
    display = Display(names, plan.seconds, folder)
    screen = console(stderr=True)
    if not as_json:
        screen.print(f"[dim]seed {plan.seed}, {plan.seconds:g} s for each engine[/]")
    with live_table(display, screen):
        if url is not None:
            return [run(names[0], plan, folder, display.watch, url)]
        return torture_all(engines, plan, folder, display.watch, at_once)


def _print_results(results: list[RunResult], as_json: bool) -> None:
    if as_json:
        print_json({"engines": [result.as_data() for result in results]})
        return
    from ..torture.run.summary import print_results
    from .views import console

    print_results(console(), results)


def _scenarios(engines: Sequence[str], names: str, times: int, guarantees: Path | None, as_json: bool) -> int:
    from ..torture.run.display import Display, live_table
    from ..torture.scenarios import chosen
    from ..torture.scenarios.suite import run_suite
    from ..torture.scenarios.table import as_data, write
    from .views import console

    scenarios = chosen(names)
    with tempfile.TemporaryDirectory(prefix="holdfast-histories-") as folder, _terminable():
        display = Display(engines, 0, Path(folder) / "none")
        with live_table(display, console(stderr=True)):
            results: list[ScenarioResult] = run_suite(engines, scenarios, Path(folder), display.watch, times)
    if guarantees is not None:
        guarantees.write_text(write(results))
    if as_json:
        print_json({"scenarios": [as_data(one) for one in results]})
    else:
        from ..torture.run.summary import print_scenarios

        print_scenarios(console(), results)
    return exit_codes.OK if all(one.passed for one in results) else exit_codes.FAILED


def _list(as_json: bool) -> int:
    from ..torture.engines import STARTERS
    from ..torture.faults import KINDS
    from ..torture.scenarios import NAMES, scenario

    data: dict[str, Any] = {
        "engines": list(STARTERS),
        "faults": {kind.name: kind.about for kind in KINDS},
        "scenarios": {name: scenario(name).about for name in NAMES},
    }
    if as_json:
        print_json(data)
        return exit_codes.OK
    click.echo("Engines: " + ", ".join(data["engines"]))
    for title in ("faults", "scenarios"):
        click.echo(f"\n{title.capitalize()}:")
        for name, about in data[title].items():
            click.echo(f"  {name:<22} {about}")
    return exit_codes.OK


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: everything that was started is ended first."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
