"""What is asked of a `once`, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import Misconfigured
from ..model import ATTEMPT_MODE, LockSpec, check_name, check_seconds
from .durations import seconds
from .once_record import MAX_RESULT_BYTES, ResultCodec, TakeoverFunction, codec_of

Takeover: TypeAlias = Literal["rerun", "refuse"] | TakeoverFunction
OnError: TypeAlias = Literal["retry", "remember"] | Callable[[BaseException], object]


@dataclass(frozen=True, slots=True)
class OncePlan:
    """What was asked of `once`, checked."""

    name: str
    ttl: float
    keep: float
    takeover: Takeover
    on_error: OnError
    wait: float | None
    codec: ResultCodec
    max_bytes: int
    prefix: str
    spec: LockSpec
    """Of an attempt at any key."""

    def key_of(self, key: str) -> str:
        """The key of the record; raises `Misconfigured` for what is no key."""
        return check_name(self.prefix + check_name(key, "key"), "key")


def prefix_of(name: str) -> str:
    check_name(name)
    if ":" in name:
        raise Misconfigured(f"the name {name!r} of a once has a colon, which separates it from its keys; leave it out")
    return f"once:{name}:"


def plan_once(
    name: str,
    *,
    keep: float | str,
    takeover: Takeover,
    ttl: float,
    on_error: OnError,
    wait: float | None,
    codec: ResultCodec | None,
    max_bytes: int,
) -> OncePlan:
    """Check the options of `once`."""
    prefix = prefix_of(name)
    check_seconds("ttl", ttl, name, above=0)
    if wait is not None:
        check_seconds("wait", wait, name)
    if takeover not in ("rerun", "refuse") and not callable(takeover):
        raise Misconfigured(
            f"takeover of {name!r} is {takeover!r}; say what happens after a crash: 'rerun' (the work may be done "
            "twice), 'refuse' (a person decides), or a function that is called with what is known of the dead attempt"
        )
    if on_error not in ("retry", "remember") and not callable(on_error):
        raise Misconfigured(
            f"on_error of {name!r} is {on_error!r}; it is 'retry', 'remember', or a function of the exception that "
            "answers with one of them"
        )
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or not 1 <= max_bytes <= 8 * MAX_RESULT_BYTES:
        raise Misconfigured(f"max_bytes of {name!r} is a whole number from 1 to {8 * MAX_RESULT_BYTES}")
    kept = seconds("keep", keep, name)
    if kept < ttl:
        raise Misconfigured(
            f"keep of {name!r} is {kept:g} s, less than its ttl of {ttl:g} s: an attempt would be forgotten while "
            "it runs"
        )
    spec = LockSpec(prefix + "*", ttl=ttl, mode=ATTEMPT_MODE, family=prefix + "*")
    return OncePlan(name, ttl, kept, takeover, on_error, wait, codec_of(codec, name), max_bytes, prefix, spec)
