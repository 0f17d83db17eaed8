"""One order on an asyncio link, as something to await."""

from __future__ import annotations

import asyncio
from typing import Any

from ..error_mapping import ErrorMapping, Refused, Silence
from .ports import AsyncLink, Order

TOO_LONG = "it took too long"


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


def asked(
    link: AsyncLink,
    order: Order,
    translation: ErrorMapping,
    loop: asyncio.AbstractEventLoop,
    timeout: float | None = None,
) -> Reply:
    """The reply to an order, errors in holdfast's words. Without one in time, nothing on this link is trusted.

    The timer answers by itself if the link does not: a reply can not be cancelled, so it must come.
    """
    reply = Reply(loop=loop)

    def give_up() -> None:
        link.fail(TOO_LONG)
        answer(None, Silence(TOO_LONG))

    timer = None if timeout is None else loop.call_later(timeout, give_up)

    def answer(value: Any, error: BaseException | None) -> None:
        if reply.done():
            return
        if timer is not None:
            timer.cancel()
        if error is None:
            reply.set_result(value)
            return
        if isinstance(error, Refused) and error.code in translation.gone:
            link.fail("the session ended")
        reply.set_exception(translation.known(error))

    link.ask(order, answer)
    return reply


def look_away(reply: asyncio.Future[Any]) -> None:
    """Whatever became of it, nobody asks any more."""
    reply.exception()


def tidied(reply: Any, error: BaseException | None) -> None:
    """Whatever became of housekeeping, nobody waits for it."""
