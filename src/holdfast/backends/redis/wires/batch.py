"""Many calls to a cluster at once: those for one node leave in one write, and their replies are read together.

1. Each node is asked beside the others (`beside`): one that hangs, or has to be dialled, keeps nobody waiting.
2. A node that does not answer in time costs only the calls that went to it.
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


def call_each(
    orders: Sequence[Order],
    servers: Servers,
    timeout: float,
    durability: Durability | None,
    alone: Callable[[Order, float], Any],
) -> list[Any]:
    """The replies, in the order of the calls; None where nobody could tell."""
    end = clock.now() + timeout
    by_node: dict[int, tuple[Links, list[int]]] = {}
    answers: list[Any] = [None] * len(orders)
    for number, order in enumerate(orders):
        links = servers.having(order.key, max(0.001, end - clock.now()))
        by_node.setdefault(id(links), (links, []))[1].append(number)

    def ask(links: Links, numbers: Sequence[int]) -> None:
        try:
            replies = _exchange(links, [orders[number] for number in numbers], end, durability)
        except (BackendUnavailable, OSError):
            servers.failed(links)
            return
        for number, reply in zip(numbers, replies, strict=True):
            if isinstance(reply, Error):
                answers[number] = alone(orders[number], max(0.001, end - clock.now()))
            else:
                answers[number] = orders[number].read(reply)

    *others, (links, numbers) = by_node.values()
    jobs = [Job(partial(ask, *each)) for each in others]
    ask(links, numbers)
    for job in jobs:
        try:
            job.wait(end - clock.now())
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
