"""Functions that run under a lock. One that returns a coroutine has not run yet when the lock is released: refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar

from ..observe.log_exception import error_text
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
    """Call the handler of actors. A thread is not cancelled: if it calls `sys.exit`, it has failed."""
    try:
        result = handler(actor, message)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"the handler of actors cannot end its thread: {error_text(error)}") from error
    refuse_coroutine(result, handler, repr(actor))
    return result
