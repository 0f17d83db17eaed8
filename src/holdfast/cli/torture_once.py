"""`holdfast torture --once` and `--actors`: what becomes of effects. Of `once` also without the fence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..errors import Misconfigured
from . import exit_codes
from .options import print_json
from .tables import show

if TYPE_CHECKING:
    from ..torture.effects.run import EffectsResult

ENGINES = ("sqlite", "redis", "postgresql", "mysql", "etcd")
COLUMNS = ("engine", "fence", "seconds", "completed", "replayed", "refused", "faults", "violations", "verdict")


def run_and_show(engines: Sequence[str], seconds: float, seed: int | None, as_json: bool, what: str = "once") -> int:
    """A run with the fence and one without it on each engine. Without it, violations are no failure of ours."""
    from ..torture.effects.actor_run import torture_actors
    from ..torture.effects.run import torture_once
    from ..torture.sandbox import NotAvailable

    if other := sorted(set(engines) - set(ENGINES)):
        raise Misconfigured(f"{what} cannot be tortured on {', '.join(other)}; use one of: {', '.join(ENGINES)}")
    seed = random.randrange(1, 1_000_000) if seed is None else seed
    results: list[EffectsResult] = []
    missing: dict[str, str] = {}
    for engine in engines or ENGINES:
        for fenced in (True, False) if what == "once" else (True,):
            click.echo(f"{engine}, {'fenced' if fenced else 'unfenced'}: {seconds:g} s", err=True)
            try:
                results.append(
                    torture_once(engine, seconds, seed, fenced=fenced)
                    if what == "once"
                    else torture_actors(engine, seconds, seed)
                )
            except NotAvailable as error:
                missing[engine] = str(error)
                click.echo(f"{engine}: not run: {error}", err=True)
                break
    if as_json:
        print_json({"seed": seed, "not run": missing, "runs": [_data(result) for result in results]})
    elif results:
        show(COLUMNS, [_row(result) for result in results], f"{what} under torture, seed {seed}", COLUMNS[2:8])
        for result in results:
            for line in [*result.violations[:5], *result.complaints[:2]]:
                click.echo(f"{result.engine}, {'fenced' if result.fenced else 'unfenced'}: {line}", err=True)
    return exit_codes.OK if all(result.passed for result in results if result.fenced) else exit_codes.FAILED


def _data(result: EffectsResult) -> dict[str, Any]:
    return asdict(result) | {"passed": result.passed}


def _row(result: EffectsResult) -> tuple[str, ...]:
    told, faults = result.told, sum(result.faults.values())
    verdict = "holds" if result.passed else "violated" if result.violations else "failed"
    counts = (told["completed"], told["seen"], told["refused"], faults, len(result.violations))
    return (
        result.engine, "yes" if result.fenced else "no", f"{result.seconds:.0f}", *map(str, counts), verdict
    )  # fmt: skip
