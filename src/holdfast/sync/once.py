# Generated from src/holdfast/aio/once.py by `make generate`: change that file, not this one.
"""Once for threads: attempts by key, and what is remembered of them. The rules are in `recipes.once`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import EllipsisType
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from .._core.pickling import unpicklable
from ..errors import Misconfigured
from ..model import check_seconds, check_token
from ..recipes import once_survey
from ..recipes.decorator import check_blocking
from ..recipes.once import AttemptSpec
from ..recipes.once_options import OncePlan
from ..recipes.once_record import AttemptView, fingerprint_of
from .attempt import Attempt

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Once:
    """Attempts by key: the first one does the work, the others get its result.

    >>> import holdfast
    >>> with holdfast.connect("memory://once-threads") as locks:
    ...     payments = locks.once("payments", keep="24h", takeover="refuse")
    ...     for _ in range(2):
    ...         with payments.attempt("order-7", fingerprint={"amount": 100}) as attempt:
    ...             if not attempt.done:
    ...                 attempt.complete({"charged": 100})
    ...     attempt.result
    {'charged': 100}
    """

    __reduce__ = unpicklable("make it there, with the same name")

    def __init__(self, coordinator: Coordinator, plan: OncePlan) -> None:
        self._coordinator = coordinator
        self._plan = plan

    @property
    def name(self) -> str:
        """What its keys belong to."""
        return self._plan.name

    def attempt(self, key: str, *, fingerprint: object = ..., wait: float | EllipsisType | None = ...) -> Attempt:
        """An attempt, to be entered by `with`.

        `fingerprint` is the payload, or the part of it that must not change (None is one, too): the same key with
        another one is `PayloadMismatch`; who gives none does not compare. If another attempt is under way, it waits for
        that one's result for `wait` seconds (None: as long as that one is alive; 0: not at all), and then raises
        `AttemptInProgress`.
        """
        plan = self._plan
        record_key = plan.key_of(key)
        limit = plan.wait if isinstance(wait, EllipsisType) else wait
        if limit is not None:
            check_seconds("wait", limit, key)
        compared = "" if fingerprint is ... else fingerprint_of(fingerprint, f"{key!r} ({plan.name!r})")
        return Attempt(self._coordinator, AttemptSpec(plan, key, record_key, compared, limit))

    def __call__(
        self, *, key: Callable[P, str], fingerprint: Callable[P, object] | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Do each call of a plain function once; `key` and `fingerprint` are called with its arguments."""
        if not callable(key) or not (fingerprint is None or callable(fingerprint)):
            raise Misconfigured(f"key= and fingerprint= of {self!r} are functions of the arguments of the call")

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            check_blocking(function, repr(self))

            @wraps(function)
            def done_once(*args: P.args, **kwargs: P.kwargs) -> R:
                payload = ... if fingerprint is None else fingerprint(*args, **kwargs)
                with self.attempt(key(*args, **kwargs), fingerprint=payload) as attempt:
                    if not attempt.done:
                        attempt.complete(function(*args, **kwargs))
                    return cast(R, attempt.result)

            return done_once

        return decorate

    def look(self, key: str) -> AttemptView | None:
        """What is remembered of a key."""
        return self._coordinator._run(once_survey.look(self._coordinator._core, self.name, key))

    def attempts(self, after: str = "", limit: int = 100) -> list[AttemptView]:
        """What is remembered, in the order of the keys: the first ones behind the key `after`."""
        return self._coordinator._run(once_survey.look_at_all(self._coordinator._core, self.name, after, limit))

    def forget(self, key: str, token: int | None = None) -> bool:
        """Remove what is remembered of a key (only the attempt with this token, if one is given), done or not.

        An attempt that is under way is refused when it completes. False if there was nothing.
        """
        if token is not None:
            check_token(token, key)
        return self._coordinator._run(once_survey.forget(self._coordinator._core, self.name, key, token))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
