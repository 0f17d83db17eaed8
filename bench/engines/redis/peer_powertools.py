"""aws-lambda-powertools: its idempotency decorator on Redis, with its defaults, outside of a Lambda.

An attempt ends with the time that the Lambda has left; without one it never does, until the record's own time is over.
So the attempt that is to become a zombie is given such a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.holdfast_tools import ZOMBIE_TTL_S, new_keys
from bench.model import Target
from bench.tool_model import ToolContender, ZombieContender

CONTENDERS = ()
POWERTOOLS = "aws-lambda-powertools"
NOTE = "writes its record unconditionally; in progress is an error at once, there is no waiting"


class LambdaContext:
    """As far as powertools looks at it."""

    def get_remaining_time_in_millis(self) -> int:
        return int(ZOMBIE_TTL_S * 1000)


@contextmanager
def _idempotent(target: Target, **config: Any) -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """The decorator; what it decorates is called with `payload=`."""
    import redis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it warns of its own names
        from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
        from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

        client = redis.Redis.from_url(target.url, decode_responses=True)
        store = CachePersistenceLayer(client=client)
    settings = IdempotencyConfig(**config)
    with client:
        yield lambda function: idempotent_function(
            function, data_keyword_argument="payload", persistence_store=store, config=settings
        )


@contextmanager
def _call(target: Target) -> Iterator[Callable[[str], object]]:
    with _idempotent(target) as decorated:

        def charge(payload: str) -> dict[str, int]:
            return {"charged": 100}

        function = decorated(charge)
        yield lambda key: function(payload=key)


@contextmanager
def first_call(target: Target) -> Iterator[Callable[[], object]]:
    with _call(target) as call:
        keys = new_keys()
        yield lambda: call(next(keys))


@contextmanager
def replay(target: Target) -> Iterator[Callable[[], object]]:
    with _call(target) as call:
        call("known")
        yield lambda: call("known")


def work(target: Target, result: str, body: Callable[[], None]) -> str:
    with _idempotent(target, lambda_context=LambdaContext()) as decorated:

        def pay(payload: str) -> str:
            body()
            return result

        return str(decorated(pay)(payload="order/7"))


TOOLS = (
    ToolContender("once, first call", POWERTOOLS, "peer", first_call, note=NOTE),
    ToolContender("once, replay", POWERTOOLS, "peer", replay, note=NOTE),
)
ZOMBIES = (ZombieContender("once", POWERTOOLS, "peer", work),)
