"""What is built on tokens beside the least statements that do the same by hand: `once`, `log.append`, actors.

1. By hand means: what a careful program would send, and no more. No renewal, no takeover, no fence, no comparison of
   payloads or of event ids, no retry: what is left out is what the tools are for.
2. In turns of a tenth of a second, so that both meet the same machine; the figure is the median of the ratios.
3. Once: claim the key where there is none, write the result where the claim stands; a replay reads it.
   Append: one event at the next version of a stream, committed. Tell and handle: a message is kept, then taken with the
   new state in one transaction; ours are told by one thread and handled by a worker of the same process.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import middle

LIMIT_RATIO = 2.0
TURN_S = 0.1
TURN_COUNT = {True: 7, False: 31}
RESULT = '{"charged":100}'
TOLD_COUNT = 50
"""Messages in one call of `tell_figure`."""


@dataclass(frozen=True, slots=True)
class OnceByHand:
    """`first` does the work of a key once, `replay` reads its result."""

    first: Callable[[str], object]
    replay: Callable[[str], object]


def once_figures(target: Target, by_hand: OnceByHand, quick: bool) -> list[Figure]:
    numbers = itertools.count(1)
    with _once(target) as ours:
        ours.first("known")
        by_hand.first("known")
        return [
            _figure(
                "once, first call",
                lambda: ours.first(f"h{next(numbers)}"),
                lambda: by_hand.first(f"b{next(numbers)}"),
                quick,
            ),
            _figure("once, replay", lambda: ours.replay("known"), lambda: by_hand.replay("known"), quick),
        ]


def append_figure(connection: Any, by_hand: Callable[[int], object], quick: bool) -> Figure:
    """`by_hand` appends an event with this version, and commits. The connection is not in autocommit mode."""
    from holdfast import log

    ours, theirs = itertools.count(0), itertools.count(1)
    event_type = "paid"

    def append() -> None:
        log.append(connection, "bench", log.EventData(event_type, {"amount": 100}), expected=next(ours))
        connection.commit()

    return _figure("append of an event", append, lambda: by_hand(next(theirs)), quick)


def tell_figure(target: Target, by_hand: Callable[[], object], quick: bool) -> Figure:
    """`by_hand` keeps a message and handles it."""
    import holdfast

    def count(actor: holdfast.Actor, amount: int) -> int:
        actor.state = (actor.state or 0) + amount
        return int(actor.state)

    with holdfast.connect(target.url) as locks, locks.actors("bench", count) as actors:

        def ours() -> None:
            for _ in range(TOLD_COUNT - 1):
                actors.tell("account", 1)
            actors.ask("account", 1, timeout=60)

        def theirs() -> None:
            for _ in range(TOLD_COUNT):
                by_hand()

        return _figure("tell and handle a message", ours, theirs, quick)


def _figure(title: str, ours: Callable[[], object], by_hand: Callable[[], object], quick: bool) -> Figure:
    say(title)
    ratio = middle([_each(ours) / _each(by_hand) for _ in range(TURN_COUNT[quick])])
    return Figure(f"{title}, × by hand", f"≤ {LIMIT_RATIO:.2f}: {ratio:.2f}", ratio <= LIMIT_RATIO)


def _each(call: Callable[[], object]) -> float:
    """Seconds for one call, over one turn."""
    clock, count = time.perf_counter, 0
    begin = clock()
    while (now := clock()) - begin < TURN_S:
        call()
        count += 1
    return (now - begin) / count


@contextmanager
def _once(target: Target) -> Iterator[OnceByHand]:
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

        yield OnceByHand(first, replay)
