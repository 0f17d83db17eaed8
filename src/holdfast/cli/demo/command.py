"""`holdfast demo`, the command."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...clock import now
from .. import exits
from ..common import json_option, print_json


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
    from .director import Act, play

    began = now()
    acts: list[Act] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        if as_json:
            acts = [play(Path(folder), fenced, lambda step: None) for fenced in (False, True)]
        else:
            acts = _show(Path(folder))
    seconds = now() - began
    if as_json:
        print_json({"acts": [_as_data(act) for act in acts], "seconds": round(seconds, 3)})
    else:
        from ..views import console
        from .show import print_counts

        print_counts(console(), acts, seconds)
    unfenced, fenced = acts
    as_told = unfenced.lost == 1 and fenced.lost == 0 and fenced.refused == 1
    return exits.OK if as_told else exits.FAILED


def _show(folder: Path) -> list[Any]:
    from ..views import console
    from .director import play
    from .show import print_outcome, print_step, print_title

    screen = console()
    acts = []
    for fenced in (False, True):
        print_title(screen, fenced)
        act = play(folder, fenced, lambda step: print_step(screen, step))
        print_outcome(screen, act)
        acts.append(act)
    return acts


def _as_data(act: Any) -> dict[str, Any]:
    return {
        "fenced": act.fenced,
        "acknowledged": act.acknowledged,
        "in_ledger": act.in_ledger,
        "lost": act.lost,
        "refused": act.refused,
        "balance": act.balance,
        "expected": act.expected,
        "steps": [asdict(step) for step in act.steps],
    }
