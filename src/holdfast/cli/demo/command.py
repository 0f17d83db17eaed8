"""`holdfast demo`, the command."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...clock import now
from .. import exit_codes
from ..options import json_option, print_json


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """See an update lost behind an ordinary lock, and refused behind a fence.

    Two processes share an account under a lock. One is stopped for longer than its ttl, between its last check and its
    write; the other takes over; the first wakes up and writes. Once without a fence, once with. Takes a few seconds
    and leaves nothing behind.

    \b
    Examples:
      holdfast demo
      holdfast demo --json | jq '.acts[] | {fenced, lost, refused}'
    """
    from .controller import DemoRun, run_demo

    began = now()
    runs: list[DemoRun] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        if as_json:
            runs = [run_demo(Path(folder), fenced, lambda step: None) for fenced in (False, True)]
        else:
            runs = _show(Path(folder))
    seconds = now() - began
    if as_json:
        print_json({"acts": [_as_data(demo_run) for demo_run in runs], "seconds": round(seconds, 3)})
    else:
        from ..views import console
        from .screen import print_counts

        print_counts(console(), runs, seconds)
    unfenced, fenced = runs
    as_told = unfenced.lost == 1 and fenced.lost == 0 and fenced.refused == 1
    return exit_codes.OK if as_told else exit_codes.FAILED


def _show(folder: Path) -> list[Any]:
    from ..views import console
    from .controller import run_demo
    from .screen import print_outcome, print_step, print_title

    screen = console()
    runs = []
    for fenced in (False, True):
        print_title(screen, fenced)
        demo_run = run_demo(folder, fenced, lambda step: print_step(screen, step))
        print_outcome(screen, demo_run)
        runs.append(demo_run)
    return runs


def _as_data(demo_run: Any) -> dict[str, Any]:
    return {
        "fenced": demo_run.fenced,
        "acknowledged": demo_run.acknowledged,
        "in_ledger": demo_run.in_ledger,
        "lost": demo_run.lost,
        "refused": demo_run.refused,
        "balance": demo_run.balance,
        "expected": demo_run.expected,
        "steps": [asdict(step) for step in demo_run.steps],
    }
