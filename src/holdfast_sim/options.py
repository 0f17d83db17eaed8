"""The options of `python -m holdfast_sim`, and what its help says."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence

from .bytes.engines import ENGINES
from .bytes.planted import CLIENT_BUGS
from .planted import BUGS
from .seeds import CORE, WORLDS

DEFAULT_SEED_COUNT = 2000

EXAMPLES = """\
examples:
  python -m holdfast_sim                              2,000 seeds, on two cores
  python -m holdfast_sim --seeds 100000 --first 20000 a long run over seeds that nobody has seen
  python -m holdfast_sim --seed 1234                  tell all that happens in one seed
  python -m holdfast_sim --planted all                show that each planted bug is found
  python -m holdfast_sim --planted no-drain --seed 14 tell how one of them is found
  python -m holdfast_sim --engine zookeeper           its own client and servers, simulated to the byte
  python -m holdfast_sim --engine once                what is built on locks, on the same store: also actors, partitions
  python -m holdfast_sim --engine all                 the core, what is built on it, and every engine

A seed is a story: it decides what clients ask for, which messages are lost, late or doubled, who stops or dies, what
the engine forgets, and how the clocks run. After each step the invariants are checked. docs/adr/0004-simulator.md
says what they are.

bugs that can be planted:
"""


def parse(argv: Sequence[str] | None) -> Namespace:
    """The options; leaves with 2 if they make no sense."""
    bugs = "\n".join(f"  {bug.name:<33} {bug.about}" for bug in BUGS.values())
    bugs += "\n\nbugs of clients, with --engine:\n"
    bugs += "\n".join(f"  {bug.name:<33} {bug.engine}: {bug.about}" for bug in CLIENT_BUGS.values())
    parser = ArgumentParser(
        prog="python -m holdfast_sim",
        description="Simulate locks under faults, in virtual time, and check what holdfast promises.",
        epilog=EXAMPLES + bugs,
        formatter_class=RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--seeds",
        type=_count,
        default=DEFAULT_SEED_COUNT,
        help=f"how many seeds to run ({DEFAULT_SEED_COUNT})",
        metavar="N",
    )
    which.add_argument("--seed", type=_seed, help="replay one seed, and tell all that happens in it", metavar="SEED")
    parser.add_argument(
        "--engine",
        choices=(*WORLDS, *ENGINES, "all"),
        default=CORE,
        help="the engine whose client is simulated to the byte; core, once, actors, partitions: none of them (core)",
    )
    parser.add_argument("--first", type=_seed, default=0, help="the first of the seeds (0)", metavar="SEED")
    parser.add_argument(
        "--planted",
        type=_bug,
        help="plant a bug, or all in turn, and look for the first seed that finds it",
        metavar="BUG",
    )
    parser.add_argument("--jobs", type=_count, default=2, help="how many cores to use (2)", metavar="N")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args(argv)
    if args.seed is not None and args.planted == "all":
        parser.error("--seed replays one seed: name one bug to plant in it")
    if args.engine == "all" and (args.seed is not None or args.planted not in (None, "all")):
        parser.error("--engine all is for many seeds, or all planted bugs: name one engine")
    if args.planted not in (None, "all") and (found := engine_of(args.planted)) != args.engine:
        if args.engine != CORE:
            parser.error(f"{args.planted} is a bug of {found}, not of {args.engine}")
        args.engine = found
    return args


def engine_of(bug: str) -> str:
    return CLIENT_BUGS[bug].engine if bug in CLIENT_BUGS else BUGS[bug].world


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _bug(text: str) -> str:
    if text != "all" and text not in BUGS and text not in CLIENT_BUGS:
        raise ArgumentTypeError(f"no bug is called {text!r}; --help lists them")
    return text
