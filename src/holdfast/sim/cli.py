"""`python -m holdfast.sim`: run seeds, replay one, or show that planted bugs are found.

Exit codes: 0 if all is as it should be, 1 if an invariant was broken (or a planted bug was not found), 2 for bad usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from .fleet import Tally, find, run_all
from .planted import BUGS, planted
from .report import Progress, bug_line, summary, summary_data
from .seed import run

PLANTED_SEEDS = 2000


def main(argv: Sequence[str] | None = None) -> int:
    args = _parse(argv)
    if args.seed is not None:
        return _replay(args.seed, args.planted, args.json)
    if args.planted is not None:
        return _look_for_bugs(args)
    return _run(args)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.sim", description="Simulate locks under faults, and check what holdfast promises."
    )
    parser.add_argument("--seeds", type=_count, help="how many seeds to run (2000)", metavar="N")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)", metavar="SEED")
    parser.add_argument("--seed", type=int, help="replay one seed, and tell all that happens in it", metavar="SEED")
    parser.add_argument(
        "--planted", choices=(*BUGS, "all"), help="plant a bug, and look for the first seed that finds it"
    )
    parser.add_argument("--jobs", type=_count, default=2, help="how many cores to use (2)", metavar="N")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args(argv)
    if args.seed is not None and args.planted == "all":
        parser.error("--seed replays one seed: name one bug to plant in it")
    return args


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1")
    return number


def _run(args: argparse.Namespace) -> int:
    seeds = range(args.first, args.first + (args.seeds or PLANTED_SEEDS))
    tally = Tally()
    began = time.monotonic()
    with Progress(len(seeds)) as progress:
        for part in run_all(seeds, args.jobs):
            tally.merge(part)
            progress.show(tally)
    took = time.monotonic() - began
    print(json.dumps(summary_data(tally, took), indent=2) if args.json else summary(tally, took))
    return 1 if tally.broken else 0


def _replay(seed: int, bug: str | None, as_json: bool) -> int:
    def tell(when: float, who: str, what: str) -> None:
        print(json.dumps([when, who, what]) if as_json else f"{when:12.6f}  {who:<9}  {what}")

    with planted(bug):
        outcome = run(seed, tell)
    if not as_json:
        print(f"\nseed {seed}: {outcome.operations} operations in {outcome.seconds:.1f} s of virtual time")
        print(f"broken: {outcome.invariant}: {outcome.story}" if outcome.invariant else "no invariant was broken")
    return 1 if outcome.invariant else 0


def _look_for_bugs(args: argparse.Namespace) -> int:
    bugs = list(BUGS) if args.planted == "all" else [args.planted]
    seeds = range(args.first, args.first + (args.seeds or PLANTED_SEEDS))
    missed = 0
    results = []
    for bug in bugs:
        began = time.monotonic()
        tally = find(bug, seeds, args.jobs)
        missed += tally.found(bug) is None
        if args.json:
            results.append({"bug": bug, **summary_data(tally, time.monotonic() - began)})
        else:
            print(bug_line(bug, tally, time.monotonic() - began), flush=True)
    if args.json:
        print(json.dumps(results, indent=2))
    elif len(bugs) > 1:
        print(f"\n{len(bugs) - missed} of {len(bugs)} planted bugs were found within {len(seeds)} seeds each")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
