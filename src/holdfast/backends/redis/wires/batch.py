"""Many calls to a cluster at once: those for one node leave in one write, and their replies are read together.

1. Each node is asked beside the others (`beside`): one that hangs, or has to be dialled, keeps nobody waiting.
2. A node that does not answer in time costs only the calls that went to it. The others wait for it once; from then on,
   until it answers again, they wait a moment (`GRACE_S`) at most: it is asked by itself when its own leases are tried
   again, and has all the time then.
3. A call that was answered with an error (a program that the node does not know, a slot that has moved) is made again
   by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .... import clock
from ....errors import BackendUnavailable
from ..codec import Order
from ..durability import Durability
from ..resp import Error
from .beside import Job
from .links import Links
from .servers import Servers

GRACE_S = 0.1


def call_each(
    orders: Sequence[Order],
    servers: Servers,
    timeout: float,
    durability: Durability | None,
    alone: Callable[[Order, float], Any],
) -> list[Any]:
    """The replies, in the order of the calls; None where nobody could tell."""
    end = until = clock.now() + timeout
    by_node: dict[int, tuple[Links, list[int]]] = {}
    answers: list[Any] = [None] * len(orders)
    for number, order in enumerate(orders):
        links = servers.having(order.key, max(0.001, end - clock.now()))
        by_node.setdefault(id(links), (links, []))[1].append(number)

    def ask(links: Links, numbers: Sequence[int]) -> None:
        try:
            replies = _exchange(links, [orders[number] for number in numbers], end, durability)
        except (BackendUnavailable, OSError):
            links.ailing = True
            servers.failed(links)
            return
        links.ailing = False
        for number, reply in zip(numbers, replies, strict=True):
            if isinstance(reply, Error):
                answers[number] = alone(orders[number], max(0.001, end - clock.now()))
            else:
                answers[number] = orders[number].read(reply)

    if len(by_node) == 1:
        ask(*next(iter(by_node.values())))
        return answers
    jobs = [(links.ailing, Job(partial(ask, links, numbers))) for links, numbers in by_node.values()]
    jobs.sort(key=lambda job: job[0])
    well = not jobs[0][0]
    for ailing, job in jobs:
        if ailing and well:
            until = min(end, clock.now() + GRACE_S)
            well = False
        try:
            job.wait(until - clock.now())
        except TimeoutError:
            pass  # what it comes to is too late
    return list(answers)


def _exchange(links: Links, orders: Sequence[Order], end: float, durability: Durability | None) -> list[Any]:
    link = links.get(max(0.001, end - clock.now()))
    try:
        timeout = max(0.001, end - clock.now())
        frames = [order.program.call(order.size) + order.words for order in orders]
        if durability is not None:
            frames.append(durability.frame(timeout))
        replies = [link.exchange(b"".join(frames), timeout)]
        replies += [link.read(max(0.001, end - clock.now())) for _ in frames[1:]]
        if durability is not None:
            durability.check(replies.pop(), replies[0])
    except BaseException:
        links.drop(link)
        raise
    links.put(link)
    return replies
