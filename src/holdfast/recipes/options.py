"""The options that every lock takes, to the recipe or to the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypedDict, TypeVar

from ..errors import Misconfigured


class Options(TypedDict, total=False):
    """How a lock is acquired and renewed. Times are in seconds."""

    ttl: float
    """How long a grant is valid without a renewal."""
    timeout: float | None
    """How long to wait; None is for ever, 0 is one try."""
    max_hold: float | None
    """The longest hold: then it is lost, however well renewal goes."""
    lock_delay: float
    """How long the name stays locked after a hold that ended uncleanly; for resources without a fence."""
    hold_at_least: float
    """The least time that the name stays locked, even if it is released earlier; for jobs under clock skew."""
    fair: bool
    """False: may be granted out of turn when it fits."""
    margin: float | None
    """How long before the end of validity the lease counts as lost."""
    renew: bool
    """False: the keeper does not renew it; it ends with its ttl."""


DEFAULTS: Options = {
    "ttl": 30.0,
    "timeout": None,
    "max_hold": None,
    "lock_delay": 0.0,
    "hold_at_least": 0.0,
    "fair": True,
    "margin": None,
    "renew": True,
}

F = TypeVar("F", bound=Callable[..., object])


def shows_options(function: F) -> F:
    """Show `**options: Unpack[Options]` one by one in the signature, for `help()` and for editors."""
    return _show(function, dict(DEFAULTS))


def shows_changes(*, without: str = "") -> Callable[[F], F]:
    """The same for a call: what is not given stays as it was given to the recipe, which is shown as `...`."""
    return lambda function: _show(function, {name: ... for name in DEFAULTS if name != without})


def _show(function: F, defaults: dict[str, object]) -> F:
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kinds = Options.__annotations__
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_spelled(kinds[name]))
        for name, default in defaults.items()
    ]
    vars(function)["__signature__"] = signature.replace(parameters=[*shown, *options])
    return function


def _spelled(annotation: object) -> str:
    """How it stands in the source."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def check_hook(what: str, hook: object, name: str, *, awaits: bool = False) -> None:
    """A hook is something to call; raises `Misconfigured` for anything else.

    `awaits`: its result is awaited, so it may be a coroutine function.
    """
    if hook is None:
        return
    if not callable(hook):
        raise Misconfigured(f"{what} of {name!r} is called with the lease, and {hook!r} cannot be called")
    if not awaits and inspect.iscoroutinefunction(hook):
        raise Misconfigured(
            f"{what} of {name!r} is the coroutine function {hook!r}, which would be called and "
            "never awaited; give a plain function, or use holdfast.aio"
        )
