"""How MariaDB pushes: a connection sleeps at the server, and whoever lets go rouses it (KILL QUERY).

The connection asks `holdfast_hear` and is answered with pushes; or it is roused, which is an error, and asks again,
which finds them. What was asked stays asked when its listener leaves: the next one goes on reading.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ...relational.refusal import Refused, Silence
from ...relational.wires.asking import asked
from ...relational.wires.ports import AsyncEar, Heard
from ..codec import ears_hear, ears_open, heard_in
from .aio_link import AsyncLink
from .dialling import Dialling
from .link import Link
from .translation import KILLED


def new_wake() -> int:
    """A number that no other ears have."""
    return int.from_bytes(os.urandom(7), "big") + 1


class Ear:
    """A connection that sleeps at the server."""

    def __init__(self, link: Link, wake: int) -> None:
        self.wake = wake
        self._link = link

    def hear(self, timeout: float) -> list[tuple[str, int]]:
        try:
            if self._link.under_way is None:
                self._link.start(ears_hear(self.wake))
            return self._link.poll(timeout) or []
        except Refused as error:
            if error.code not in KILLED:
                raise Silence(str(error)) from error
            return heard_in(error)  # roused: before it heard something, or after

    def ring(self) -> None:
        """Nobody does: a release here never names whom it has granted, so all pushes come from the server."""

    def hang_up(self) -> None:
        self._link.hang_up()

    def disown(self) -> None:
        self._link.disown()

    def close(self) -> None:
        self._link.close()


class Hearing:
    """Listens under one number, unless the connection that listened before is not yet gone."""

    def __init__(self, dialling: Dialling) -> None:
        self._dialling = dialling
        self._wake = new_wake()

    def listen(self, timeout: float) -> Ear:
        link = self._dialling.dial()
        try:
            if not link.ask(ears_open(self._wake), timeout):
                self._wake = new_wake()
                link.ask(ears_open(self._wake), timeout)
        except (Silence, Refused) as error:
            link.close()
            raise self._dialling.translation.unknown(error) from error
        return Ear(link, self._wake)

    async def listen_async(self, heard: Heard, timeout: float) -> AsyncEar:
        link, loop = await self._dialling.dial_async(), asyncio.get_running_loop()
        translation = self._dialling.translation
        try:
            if not await asked(link, ears_open(self._wake), translation, loop, timeout):
                self._wake = new_wake()
                await asked(link, ears_open(self._wake), translation, loop, timeout)
        except BaseException:
            link.close()
            raise
        keep_hearing(link, self._wake, heard)
        return AsyncEar(self._wake, link)


def keep_hearing(link: AsyncLink, wake: int, heard: Heard) -> None:
    """Ask, hand over what is heard, and ask again."""

    def answer(pushes: Any, error: BaseException | None) -> None:
        if isinstance(error, Refused) and error.code in KILLED:
            pushes, error = heard_in(error), None  # roused: before it heard something, or after
        if error is not None:
            link.close()
        elif not link.closed:
            for owner, token in pushes:
                heard(owner, token)
            keep_hearing(link, wake, heard)

    link.ask(ears_hear(wake), answer)
