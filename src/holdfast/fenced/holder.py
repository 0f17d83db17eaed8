"""Who stands at a fence: a lease, or a bare token handed on from one (`HOLDFAST_TOKEN`, a sequencer).

A token is a whole number from 1 to 2⁶³ − 1; every engine's tokens are. 0 is what people have when they have
none.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from ..errors import Misconfigured

MAX_TOKEN = 2**63 - 1


class HasToken(Protocol):
    """Anything with a token: a lease of either twin, a sequencer."""

    @property
    def token(self) -> int: ...


Holder: TypeAlias = HasToken | int


def token_of(holder: Holder) -> int:
    """The holder's token, checked.

    >>> token_of(42)
    42
    """
    token = holder if isinstance(holder, int) else getattr(holder, "token", None)
    if not isinstance(token, int) or isinstance(token, bool):
        raise Misconfigured(f"a fence takes a lease or its token, not {holder!r}; of lock_all pass one lease")
    if not 1 <= token <= MAX_TOKEN:
        raise Misconfigured(f"a token is a whole number from 1 to {MAX_TOKEN}, not {token}; pass the lease itself")
    return token
