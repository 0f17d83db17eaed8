"""Many calls to a cluster at once: those for one node leave in one write, and their replies are read together.

A node that does not answer costs only the calls that went to it. A call that was answered with an error (a program
that the node does not know, a slot that has moved) is made again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable
from ..codec import Order
from ..durability import Durability
from ..resp import Error
from .links import Links
from .servers import Servers


def call_each(
    orders: Sequence[Order],
    servers: Servers,
    timeout: float,
    durability: Durability | None,
    alone: Callable[[Order], Any],
) -> list[Any]:
    """The replies, in the order of the calls; None where nobody could tell."""
    by_node: dict[int, tuple[Links, list[int]]] = {}
    answers: list[Any] = [None] * len(orders)
    for number, order in enumerate(orders):
        links = servers.having(order.key)
        by_node.setdefault(id(links), (links, []))[1].append(number)
    for links, numbers in by_node.values():
        try:
            replies = _exchange(links, [orders[number] for number in numbers], timeout, durability)
        except (BackendUnavailable, OSError):
            continue
        for number, reply in zip(numbers, replies, strict=True):
            if isinstance(reply, Error):
                answers[number] = alone(orders[number])
            else:
                answers[number] = orders[number].read(reply)
    return answers


def _exchange(links: Links, orders: Sequence[Order], timeout: float, durability: Durability | None) -> list[Any]:
    link = links.get(timeout)
    try:
        frames = [order.program.call(order.size) + order.words for order in orders]
        if durability is not None:
            frames.append(durability.frame(timeout))
        replies = [link.exchange(b"".join(frames), timeout)]
        replies += [link.read(timeout) for _ in frames[1:]]
        if durability is not None:
            durability.check(replies.pop(), replies[0])
    except BaseException:
        links.drop(link)
        raise
    links.put(link)
    return replies
