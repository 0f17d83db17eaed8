"""Replies of the programs, as what the flows expect."""

from __future__ import annotations

from typing import Any

from ..._core.line import GHOST
from ...model import ClaimView, LockView, Predecessor
from ..execute import SECOND_US
from ..queue_backend import UNKNOWN, Push, Taken

SAID = ("held", "refused", "evicted", "expired", UNKNOWN)


ENDED = {ord("r"): "released", ord("x"): "expired", ord("e"): "evicted"}
TOKEN_BYTES = 16
OWNER = 2 + TOKEN_BYTES
"""Where the owner begins in what is said of how a hold ended (forms.lua)."""


def ended(said: bytes) -> Predecessor | None:
    """How the last hold ended, as forms.lua has it; None if nothing is said."""
    if not said:
        return None
    return Predecessor(int(said[2:OWNER]), said[OWNER:].decode(), ENDED[said[0]])


def pushed(said: bytes) -> tuple[str, Push | None]:
    """Who is told, and what: "owner token", and how the last hold ended. None where it is no grant."""
    owner, _, rest = said.partition(b" ")
    token, _, how = rest.partition(b" ")
    return owner.decode(), Push(int(token), ended(how)) if token.isdigit() else None


def one_taken(reply: Any) -> list[Taken]:
    if reply.__class__ is bytes:
        if len(reply) == TOKEN_BYTES:
            return [Taken(int(reply))]
        return [Taken(int(reply[:TOKEN_BYTES]), 0.0, 0, None, 0, 0.0, ended(reply[TOKEN_BYTES:]))]
    if isinstance(reply, list):
        return [Taken(0, reply[0] / SECOND_US, reply[1], mark=reply[2])]
    return [Taken(reply) if reply >= 0 else Taken(0, capacity=-reply)]


def taken(reply: list[Any]) -> list[Taken]:
    return [one_taken(one)[0] for one in reply]


def released_now_or_before(reply: Any) -> bool:
    """It was released by this call, or by the one whose reply was lost: the holder's own clock says if it was held."""
    return True


def said(reply: list[int]) -> list[str]:
    return [SAID[one] for one in reply]


def allowed(reply: list[int]) -> tuple[bool, float]:
    return bool(reply[0]), reply[1] / SECOND_US


def view_of(name: str, view: list[Any], now: int) -> LockView:
    holders: list[ClaimView] = []
    waiters: list[ClaimView] = []
    for owner, token, weight, since, expires, info, holds in view[3:]:
        pid, mode, actor, host = info.decode().split(" ", 3)
        said = owner.decode()
        claim = ClaimView(
            owner=said.removeprefix(GHOST),
            token=token or None,
            weight=weight,
            host=host,
            pid=int(pid),
            since=since / SECOND_US,
            remaining=max(0, expires - now) / SECOND_US,
            actor=actor,
            mode=mode,
            live=not token or (bool(holds) and not said.startswith(GHOST)),
            age=max(0, now - since) / SECOND_US,
        )
        (holders if token else waiters).append(claim)
    return LockView(name, view[1], tuple(holders), tuple(waiters), ended(view[2]))


def waits(taken: Taken) -> bool:
    return not taken.token and taken.capacity is None
