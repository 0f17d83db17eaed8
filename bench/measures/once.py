"""`once` beside the least statements that do the same by hand: the first call of a key, and a replay.

By hand means: claim the key where there is none, write the result where the claim stands, read it. No renewal, no
takeover, no fence, no comparison of payloads: what is left out is what `once` is for. In turns, as everywhere.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import middle

LIMIT_RATIO = 2.0
TURN_S = 0.1
TURN_COUNT = {True: 7, False: 31}
RESULT = '{"charged":100}'


@dataclass(frozen=True, slots=True)
class ByHand:
    """`first` does the work of a key once, `replay` reads its result."""

    first: Callable[[str], object]
    replay: Callable[[str], object]


def figures(target: Target, by_hand: ByHand, quick: bool) -> list[Figure]:
    """The ratio of the two medians, for the first call and for a replay."""
    numbers = itertools.count(1)
    with _holdfast(target) as ours:
        ours.first("known")
        by_hand.first("known")
        found = []
        for what, mine, theirs in (
            ("first call", lambda: ours.first(f"h{next(numbers)}"), lambda: by_hand.first(f"b{next(numbers)}")),
            ("replay", lambda: ours.replay("known"), lambda: by_hand.replay("known")),
        ):
            say(f"once: {what}")
            ratios = [_each(mine) / _each(theirs) for _ in range(TURN_COUNT[quick])]
            ratio = middle(ratios)
            found.append(Figure(f"once, {what}, × by hand", f"≤ {LIMIT_RATIO:.2f}: {ratio:.2f}", ratio <= LIMIT_RATIO))
        return found


def _each(call: Callable[[], object]) -> float:
    """Seconds for one call, over one turn."""
    clock, count = time.perf_counter, 0
    begin = clock()
    while (now := clock()) - begin < TURN_S:
        call()
        count += 1
    return (now - begin) / count


@contextmanager
def _holdfast(target: Target) -> Iterator[ByHand]:
    import holdfast

    with holdfast.connect(target.url) as locks:
        once = locks.once("bench", keep="1h", takeover="refuse")

        def first(key: str) -> None:
            with once.attempt(key) as attempt:
                if not attempt.done:
                    attempt.complete({"charged": 100})

        def replay(key: str) -> object:
            with once.attempt(key) as attempt:
                return attempt.result

        yield ByHand(first, replay)
