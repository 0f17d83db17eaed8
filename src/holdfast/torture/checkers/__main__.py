"""`python -m holdfast.torture.checkers RUN…`: judge recorded runs (folders, or exported histories).

`--bench [OPERATIONS]` makes up a run, writes it, reads it back and judges it, and says what each step took.
Exit codes: 0 if all that must hold did, 1 if not, 2 for bad usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..history_reader import export, load
from ..synthetic_history import SyntheticPlan, make_history
from .judge import Judgement, judge

T = TypeVar("T")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast.torture.checkers", description="Judge recorded runs.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="the folder of a run, or an exported history")
    parser.add_argument("--bench", nargs="?", type=int, const=100_000, metavar="OPERATIONS", help="time the checkers")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    args = parser.parse_args()
    if args.bench:
        return bench(args.bench)
    if not args.runs:
        parser.error("give the folder of a run, or --bench")
    judgements = [judge(load(run)) for run in args.runs]
    if args.json:
        print(json.dumps([judgement.as_data() for judgement in judgements], indent=2, ensure_ascii=False))
    else:
        for judgement in judgements:
            print(_words(judgement))
    return 0 if all(judgement.passed for judgement in judgements) else 1


def bench(operations: int) -> int:
    """Time every step, on a run with pauses and lost updates: the slow case."""
    history = make_history(
        SyntheticPlan(holds=operations // 4, clients=12, names=4, discipline="unfenced", pauses=0.01)
    )
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        file = Path(folder) / "history.jsonl"
        with file.open("w") as lines:
            for line in export(history):
                print(json.dumps(line), file=lines)
        print(f"{len(history.operations):,} operations, {file.stat().st_size / 1e6:.1f} MB of lines")
        history, reading = _timed(lambda: load(file))
    judgement, judging = _timed(lambda: judge(history))
    print(f"read   {reading:6.2f} s\njudged {judging:6.2f} s, {judgement.counts['violations']:,} violations found")
    print(f"in all {(reading + judging) / len(history.operations) * 100_000:6.2f} s for 100,000 operations (CPU time)")
    return 0


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def _words(judgement: Judgement) -> str:
    run = judgement.run
    head = f"{run.engine}, {run.discipline}, seed {run.seed}: {judgement.counts['operations']:,} operations"
    rows = [f"  {line.title:<18} {line.word:<20} {line.text}" for line in judgement.lines]
    return "\n".join([head, *rows])


if __name__ == "__main__":
    sys.exit(main())
