"""Plays a list of scenarios on a list of engines, several engines beside each other: they mostly wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...errors import HoldfastError
from ..arena import NotHere, Site
from ..engines import Wishes, start
from .model import Scenario, Shown
from .theatre import Theatre

ENGINES_AT_ONCE = 4
Watch = Callable[[str, str, str], None]


def play(
    engines: Sequence[str],
    scenarios: Sequence[Scenario],
    folder: Path,
    watch: Watch = lambda *what: None,
    times: int = 1,
) -> list[Shown]:
    """All of them, by scenario and engine. A play that goes wrong is a failure of its own, not of the others.

    Each is played so many times: what one busy run shows may be chance.
    """
    repeated = [scenario for scenario in scenarios for _ in range(times)]
    with ThreadPoolExecutor(ENGINES_AT_ONCE) as pool:
        each = list(pool.map(lambda engine: play_on(engine, repeated, folder, watch), engines))
    return [shown for row in zip(*each, strict=True) for shown in row]


def play_on(scheme: str, scenarios: Sequence[Scenario], folder: Path, watch: Watch = lambda *what: None) -> list[Shown]:
    """All of them on one engine."""
    with Site("holdfast-scenarios-") as site:
        watch(scheme, "starts", "")
        try:
            engine = start(scheme, site, Wishes(clocks=True, replica=True))
        except NotHere as error:
            return [Shown(scenario, scheme, not_run=str(error)) for scenario in scenarios]
        except HoldfastError as error:
            return [Shown(scenario, scheme, failure=str(error)) for scenario in scenarios]
        theatre = Theatre(site, engine, folder)
        found = []
        for scenario in scenarios:
            watch(scheme, scenario.name, "")
            try:
                found.append(theatre.show(scenario))
            except Exception as error:  # noqa: BLE001  told in the table, and fails the run
                found.append(Shown(scenario, scheme, failure=f"{type(error).__name__}: {error}"))
        watch(scheme, "ends", "")
        return found
