"""How MariaDB pushes: a connection waits at the server, and whoever lets go rouses it (KILL QUERY).

1. The connection asks `holdfast_hear` and is answered with pushes; or it is roused, which is an error, and asks again,
   which finds them. What was asked stays asked when its listener leaves: the next one goes on reading.
2. At the server it waits for the user lock of the request connection beside it (`schema/ears.sql` says why). While
   there is none, because it has ended and nobody has asked anything since, there is a short pause between two looks.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

from ...relational.refusal import Refused, Silence
from ...relational.wires.asking import asked
from ...relational.wires.ports import AsyncEar, Heard
from ..codec import ALONE, ears_hear, ears_open, heard_in
from .aio_link import AsyncLink
from .dialling import Dialling
from .link import Link
from .translation import KILLED

PAUSE = 0.05


class Requests:
    """Dials the request connection of a wire, and remembers which session that is."""

    def __init__(self, dialling: Dialling) -> None:
        self._dialling = dialling
        self.timeout = dialling.timeout
        self.translation = dialling.translation
        self.session = 0

    def dial(self, words: Sequence[bytes] = ()) -> Link:
        link = self._dialling.dial(words)
        self.session = link.told_id
        return link

    async def dial_async(self, words: Sequence[bytes] = ()) -> AsyncLink:
        link = await self._dialling.dial_async(words)
        self.session = link.told_id
        return link


def new_wake() -> int:
    """A number that no other ears have."""
    return int.from_bytes(os.urandom(7), "big") + 1


class Ear:
    """A connection that waits at the server."""

    def __init__(self, link: Link, wake: int, beside: Requests) -> None:
        self.wake = wake
        self._link = link
        self._beside = beside

    def hear(self, timeout: float) -> list[tuple[str, int]]:
        try:
            if self._link.under_way is None:
                self._link.start(ears_hear(self.wake, self._beside.session))
            return self._link.poll(timeout) or []
        except Refused as error:
            if error.code == ALONE:
                time.sleep(min(timeout, PAUSE))
                return []
            if error.code not in KILLED:
                raise Silence(str(error)) from error
            return heard_in(error)  # roused: before it heard something, or after

    def set(self) -> None:
        """Nobody does: a release here never names whom it has granted, so all pushes come from the server."""

    def hang_up(self) -> None:
        self._link.hang_up()

    def disown(self) -> None:
        self._link.disown()

    def close(self) -> None:
        self._link.close()


class Hearing:
    """Listens under one number, unless the connection that listened before is not yet gone."""

    def __init__(self, dialling: Dialling, beside: Requests) -> None:
        self._dialling = dialling
        self._beside = beside
        self._wake = new_wake()

    def listen(self) -> Ear:
        link, timeout = self._dialling.dial(), self._dialling.timeout
        try:
            if not link.ask(ears_open(self._wake), timeout):
                self._wake = new_wake()
                link.ask(ears_open(self._wake), timeout)
        except (Silence, Refused) as error:
            link.close()
            raise self._dialling.translation.unknown(error) from error
        return Ear(link, self._wake, self._beside)

    async def listen_async(self, heard: Heard) -> AsyncEar:
        link, loop = await self._dialling.dial_async(), asyncio.get_running_loop()
        translation, timeout = self._dialling.translation, self._dialling.timeout
        try:
            if not await asked(link, ears_open(self._wake), translation, loop, timeout):
                self._wake = new_wake()
                await asked(link, ears_open(self._wake), translation, loop, timeout)
        except BaseException:
            link.close()
            raise
        keep_hearing(link, self._wake, self._beside, heard)
        return AsyncEar(self._wake, link)


def keep_hearing(link: AsyncLink, wake: int, beside: Requests, heard: Heard) -> None:
    """Ask, hand over what is heard, and ask again."""
    if link.closed:
        return

    def answer(pushes: Any, error: BaseException | None) -> None:
        if isinstance(error, Refused) and error.code == ALONE:
            asyncio.get_running_loop().call_later(PAUSE, keep_hearing, link, wake, beside, heard)
            return
        if isinstance(error, Refused) and error.code in KILLED:
            pushes, error = heard_in(error), None  # roused: before it heard something, or after
        if error is not None:
            link.close()
            return
        for owner, token in pushes:
            heard(owner, token)
        keep_hearing(link, wake, beside, heard)

    link.ask(ears_hear(wake, beside.session), answer)
