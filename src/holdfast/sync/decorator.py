"""Functions that run under a lock. One that returns a coroutine has not run yet when the lock is released: refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar

from ..recipes.decorator import check_blocking, refuse_coroutine
from .lease import Lease

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")


def hold_for_calls(lock: AbstractContextManager[object], function: Callable[P, R]) -> Callable[P, R]:
    """The function, each call of it under the lock."""
    check_blocking(function, repr(lock))

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with lock:
            result = function(*args, **kwargs)
            refuse_coroutine(result, function, repr(lock))
            return result

    return locked


def call_body(body: Callable[[Lease], R], lease: Lease, recipe: str) -> R:
    """Call the body of a leader."""
    result = body(lease)
    refuse_coroutine(result, body, recipe)
    return result


def call_policy(policy: Callable[..., object], what: str, *arguments: object) -> object:
    """What a function of the user decides; `what` it is given as."""
    decision = policy(*arguments)
    refuse_coroutine(decision, policy, what)
    return decision


def call_handler(handler: Callable[[A, B], R], actor: A, message: B) -> R:
    """Call the handler of actors."""
    result = handler(actor, message)
    refuse_coroutine(result, handler, repr(actor))
    return result
