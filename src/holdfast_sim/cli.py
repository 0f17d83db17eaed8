"""`python -m holdfast_sim`: run seeds, replay one, or show that planted bugs are found.

Exit codes: 0 if all is as it should be, 1 if an invariant was broken (or a planted bug was not found), 2 for bad usage.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from .options import parse
from .planted import BUGS, planted
from .report import Progress, bug_data, bug_line, bug_table_head, outcome_data, replay_command, summary, summary_data
from .seed import run
from .seeds import SeedTotals, find, run_all


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    try:
        if args.seed is not None:
            return _replay(args.seed, args.planted, args.json)
        if args.planted is not None:
            return _find_bugs(args)
        return _run(args)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough: `--seed 7 | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(args: Namespace) -> int:
    seeds = range(args.first, args.first + args.seeds)
    totals = SeedTotals()
    began = time.monotonic()
    with Progress(len(seeds)) as progress:
        for part in run_all(seeds, args.jobs):
            totals.merge(part)
            progress.show(totals)
    took = time.monotonic() - began
    print(json.dumps(summary_data(totals, took), indent=2) if args.json else summary(totals, took))
    return 1 if totals.broken else 0


def _replay(seed: int, bug: str | None, as_json: bool) -> int:
    def tell(when: float, who: str, what: str) -> None:
        print(json.dumps([round(when, 6), who, what]) if as_json else f"{when:12.6f}  {who:<9}  {what}")

    with planted(bug):
        outcome = run(seed, tell)
    if as_json:
        print(json.dumps(outcome_data(outcome, bug)))
    else:
        print(f"\nseed {seed}: {outcome.operations} operations in {outcome.seconds:.1f} s of virtual time")
        print(f"broken: {outcome.invariant}: {outcome.story}" if outcome.invariant else "no invariant was broken")
        if outcome.invariant:
            print(f"replay it: {replay_command(seed, bug)}")
    return 1 if outcome.invariant else 0


def _find_bugs(args: Namespace) -> int:
    bugs = list(BUGS) if args.planted == "all" else [args.planted]
    seeds = range(args.first, args.first + args.seeds)
    results = []
    if not args.json:
        print(bug_table_head())
    for bug in bugs:
        began = time.monotonic()
        totals = find(bug, seeds, args.jobs)
        results.append(bug_data(bug, totals, time.monotonic() - began))
        if not args.json:
            print(bug_line(bug, totals), flush=True)
    found = [result for result in results if result["found"]]
    if args.json:
        print(json.dumps(results, indent=2))
    else:
        print(f"\n{len(found)} of {len(bugs)} planted bugs were found within {len(seeds):,} seeds each")
        if found:
            print(f"replay one: {found[-1]['replay']}")
    return 0 if len(found) == len(bugs) else 1
