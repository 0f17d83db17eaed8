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

from .bytes.engines import ENGINES
from .bytes.planted import CLIENT_BUGS
from .options import engine_of, parse
from .planted import BUGS
from .report import Progress, bug_data, bug_line, bug_table_head, outcome_data, replay_command, summary, summary_data
from .seeds import WORLDS, SeedTotals, find, run_all, run_one


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    try:
        if args.seed is not None:
            return _replay(args.engine, args.seed, args.planted, args.json)
        if args.planted is not None:
            return _find_bugs(args)
        engines = [*WORLDS, *ENGINES] if args.engine == "all" else [args.engine]
        return max([_run(args, engine) for engine in engines])
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough: `--seed 7 | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(args: Namespace, engine: str) -> int:
    seeds = range(args.first, args.first + args.seeds)
    totals = SeedTotals()
    began = time.monotonic()
    with Progress(len(seeds)) as progress:
        for part in run_all(seeds, args.jobs, engine=engine):
            totals.merge(part)
            progress.show(totals)
    took = time.monotonic() - began
    data = summary_data(totals, took, engine)
    print(json.dumps(data, indent=2) if args.json else summary(totals, took, engine))
    return 1 if totals.broken else 0


def _replay(engine: str, seed: int, bug: str | None, as_json: bool) -> int:
    def tell(when: float, who: str, what: str) -> None:
        print(json.dumps([round(when, 6), who, what]) if as_json else f"{when:12.6f}  {who:<9}  {what}")

    outcome = run_one(engine, seed, bug, tell)
    if as_json:
        print(json.dumps(outcome_data(outcome, bug, engine)))
    else:
        print(f"\nseed {seed}: {outcome.operations} operations in {outcome.seconds:.1f} s of virtual time")
        print(f"broken: {outcome.invariant}: {outcome.story}" if outcome.invariant else "no invariant was broken")
        if outcome.invariant:
            print(f"replay it: {replay_command(seed, bug, engine)}")
    return 1 if outcome.invariant else 0


def _find_bugs(args: Namespace) -> int:
    bugs = [bug for bug in (*BUGS, *CLIENT_BUGS) if args.engine in ("all", engine_of(bug))]
    bugs = bugs if args.planted == "all" else [args.planted]
    seeds = range(args.first, args.first + args.seeds)
    results = []
    if not args.json:
        print(bug_table_head())
    for bug in bugs:
        began = time.monotonic()
        totals = find(bug, seeds, args.jobs, engine_of(bug))
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
