#!/usr/bin/env python3
"""Run Spin on every variant of the Redlock model, and compare with what must come of it.

    proofs/check.py                      all but the deep ones
    proofs/check.py --deep               all
    proofs/check.py ballots-3 naive      some
    proofs/check.py --trail naive        the counterexample, step by step
    proofs/check.py --list               what there is

1. A search counts as complete only if the checker says so: no error, no limit of depth, memory or time was met.
2. Breadth first, so a counterexample is a shortest one.
3. Everything is made in a temporary folder; nothing is left behind.
Exits with 1 if an expectation is not met, 2 if the tools are missing.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

MODEL = Path(__file__).resolve().parent
sys.path[0] = str(MODEL.parent)  # so that a script in a folder, run by its path, sees that folder as a package

from proofs.trail import broken, story  # noqa: E402 -- needs the line above
from proofs.variants import VARIANTS, Variant  # noqa: E402 -- the same

MEGABYTES = 3500
SECONDS = 900
COMPILE = ["gcc", "-w", "-O2", "-DBFS", "-DCOLLAPSE", "-DSAFETY", f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"]
INCOMPLETE = ("max search depth too small", "out of memory", "memory limit", "Search not completed", "VECTORSZ")


@dataclass(frozen=True, slots=True)
class Result:
    """`result`: holds, the letter of what broke, or why there is no verdict."""

    variant: str
    expected: str
    result: str
    states: int
    megabytes: float
    seconds: float
    shows: str

    @property
    def met(self) -> bool:
        return self.result == self.expected


def search(variant: Variant, folder: Path) -> str:
    """Build the checker of a variant and run it; what it printed."""
    for file in MODEL.glob("*.pml"):
        shutil.copy(file, folder)
    for command in (["spin", *variant.defines(), "-a", "redlock.pml"], COMPILE):
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if made.returncode or "Error" in made.stdout:
            raise SystemExit(f"{variant.name}: {' '.join(command)}\n{made.stdout}{made.stderr}")
    try:
        return subprocess.run(["./pan", "-E"], cwd=folder, capture_output=True, text=True, timeout=SECONDS).stdout
    except subprocess.TimeoutExpired:
        return f"Search not completed: {SECONDS} s were not enough"


def replay(folder: Path) -> list[str]:
    """The trail of an error, as the checker tells it."""
    return subprocess.run(["./pan", "-r"], cwd=folder, capture_output=True, text=True).stdout.splitlines()


def verdict(printed: str, folder: Path) -> str:
    if (folder / "redlock.pml.trail").exists():
        return broken(replay(folder))
    if trouble := next((line.strip() for line in printed.splitlines() if any(s in line for s in INCOMPLETE)), ""):
        return trouble
    return "holds" if "errors: 0" in printed else "no verdict"


def figure(pattern: str, printed: str) -> float:
    found = re.search(pattern, printed)
    return float(found[1]) if found else 0.0


def check(variant: Variant) -> Result:
    with tempfile.TemporaryDirectory(prefix="proofs-") as name:
        folder = Path(name)
        began = time.monotonic()
        printed = search(variant, folder)
        return Result(
            variant.name,
            variant.expected,
            verdict(printed, folder),
            int(figure(r"([\d.e+]+) states, stored", printed)),
            figure(r"([\d.]+)\s+total actual memory usage", printed),
            round(time.monotonic() - began, 1),
            variant.shows,
        )


def table(results: list[Result]) -> str:
    lines = [f"{'variant':20} {'expected':9} {'result':9} {'states':>10} {'MB':>6} {'s':>6}  shows"]
    for r in results:
        flag = "" if r.met else "   <-- not as expected"
        figures = f"{r.states:10,} {r.megabytes:6.0f} {r.seconds:6.1f}"
        lines.append(f"{r.variant:20} {r.expected:9} {r.result:9} {figures}  {r.shows}{flag}")
    return "\n".join(lines)


def tell(variant: Variant) -> int:
    with tempfile.TemporaryDirectory(prefix="proofs-") as name:
        folder = Path(name)
        search(variant, folder)
        if not (folder / "redlock.pml.trail").exists():
            print(f"{variant.name}: no trail, nothing breaks")
            return 1
        print(f"{variant.name}: {variant.shows}")
        print("\n".join(story(replay(folder), plain="COUNTERS" in variant.flags)))
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the Promela model of Redlock with fencing tokens.")
    parser.add_argument("names", nargs="*", metavar="VARIANT", help="only these")
    parser.add_argument("--deep", action="store_true", help="the large ones too")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (1)")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("--trail", metavar="VARIANT", help="print the counterexample of one variant")
    parser.add_argument("--list", action="store_true", help="print the variants and their switches")
    options = parser.parse_args()
    known = {variant.name: variant for variant in VARIANTS}
    asked = [*options.names, *([options.trail] if options.trail else [])]
    if unknown := [name for name in asked if name not in known]:
        parser.error(f"no variant {', '.join(unknown)}; there are: {', '.join(known)}")
    if options.list:
        print("\n".join(f"{v.name:20} {v.expected:6} {' '.join(v.defines()):55} {v.shows}" for v in VARIANTS))
        return 0
    if missing := [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]:
        print(f"{' and '.join(missing)} not found: apt-get install spin gcc", file=sys.stderr)
        return 2
    if options.trail:
        return tell(known[options.trail])
    chosen = [known[name] for name in options.names] or [v for v in VARIANTS if options.deep or not v.deep]
    results = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for place, result in enumerate(pool.map(check, chosen), 1):
            results.append(result)
            words = f"[{place}/{len(chosen)}] {result.variant}: {result.result}, {result.seconds:.1f} s"
            print(words, file=sys.stderr, flush=True)
    print(json.dumps([asdict(r) | {"met": r.met} for r in results], indent=2) if options.json else table(results))
    return 0 if all(r.met for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
