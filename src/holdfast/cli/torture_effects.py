"""`holdfast torture --once`, `--actors`, `--partitions` and `--log`: what becomes of effects, fenced and unfenced."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import Misconfigured
from . import exit_codes
from .options import print_json
from .tables import show

if TYPE_CHECKING:
    from ..torture.effects.run import EffectsResult

COLUMNS = ("engine", "fence", "seconds", "operations", "completed", "refused", "faults", "violations", "verdict")


def run_and_show(names: Sequence[str], engines: Sequence[str], seconds: float, seed: int | None, as_json: bool) -> int:
    """A run with the fence and one without it on each engine. Without it, violations are no failure of ours."""
    from ..torture.effects.run import torture_effects
    from ..torture.effects.workloads import WORKLOADS
    from ..torture.sandbox import NotAvailable

    if len(names) > 1:
        raise Misconfigured(f"one at a time, please: --{' or --'.join(names)}")
    workload = WORKLOADS[names[0]]
    if other := sorted(set(engines) - set(workload.engines)):
        raise Misconfigured(
            f"{workload.name} cannot be tortured on {', '.join(other)}; use one of: {', '.join(workload.engines)}"
        )
    seed = random.randrange(1, 1_000_000) if seed is None else seed
    results: list[EffectsResult] = []
    missing: dict[str, str] = {}
    for engine in engines or workload.engines:
        for fenced in (True, False):
            click.echo(f"{engine}, {'fenced' if fenced else 'unfenced'}: {seconds:g} s", err=True)
            try:
                results.append(torture_effects(workload, engine, seconds, seed, fenced=fenced))
            except NotAvailable as error:
                missing[engine] = str(error)
                click.echo(f"{engine}: not run: {error}", err=True)
                break
    if as_json:
        print_json({"seed": seed, "not run": missing, "runs": [_data(result) for result in results]})
    elif results:
        show(COLUMNS, [_row(result) for result in results], f"{workload.name} under torture, seed {seed}", COLUMNS[2:8])
        for result in results:
            for line in [*result.violations[:5], *result.complaints[:2]]:
                click.echo(f"{result.engine}, {'fenced' if result.fenced else 'unfenced'}: {line}", err=True)
    return exit_codes.OK if all(result.passed for result in results if result.fenced) else exit_codes.FAILED


def _data(result: EffectsResult) -> dict[str, Any]:
    counts = {"told": dict(result.told), "faults": dict(result.faults)}  # `asdict` counts the pairs of a Counter
    data = {name: getattr(result, name) for name in ("engine", "fenced", "seed", "seconds", "violations", "complaints")}
    return data | counts | {"operations": result.operations, "passed": result.passed}


def _row(result: EffectsResult) -> tuple[str, ...]:
    told, faults = result.told, sum(result.faults.values())
    verdict = "holds" if result.passed else "violated" if result.violations else "failed"
    counts = (result.operations, told["completed"], told["refused"], faults, len(result.violations))
    return (
        result.engine, "yes" if result.fenced else "no", f"{result.seconds:.0f}", *map(str, counts), verdict
    )  # fmt: skip
