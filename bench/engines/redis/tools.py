"""`once` and actors beside commands on a raw socket: SET NX, SET XX and GET; RPUSH, and a transaction that handles.

`log.append` is beside a program on the same client of redis-py: it compares a version, and adds the event to its stream
and to that of all events.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from bench import holdfast_tools
from bench.engines.redis import command, connect
from bench.measures.tools import RESULT, TOLD_COUNT
from bench.model import Target
from bench.tool_model import BY_HAND, ToolContender

CONTENDERS = ()
KEEP_MS = 3_600_000


@contextmanager
def _asked(target: Target) -> Iterator[Callable[..., bytes]]:
    with connect(target) as link:

        def ask(*words: object) -> bytes:
            link.sendall(command(*words))
            return link.recv(4096)

        yield ask


def _once(ask: Callable[..., bytes], key: str) -> None:
    ask("SET", f"hand:{key}", "running", "NX", "PX", KEEP_MS)
    ask("SET", f"hand:{key}", RESULT, "XX", "PX", KEEP_MS)


@contextmanager
def first_call(target: Target) -> Iterator[Callable[[], object]]:
    with _asked(target) as ask:
        keys = holdfast_tools.new_keys()
        yield lambda: _once(ask, next(keys))


@contextmanager
def replay(target: Target) -> Iterator[Callable[[], object]]:
    with _asked(target) as ask:
        _once(ask, "known")
        yield lambda: ask("GET", "hand:known")


@contextmanager
def tell(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link:
        steps = (("MULTI",), ("LPOP", "hand:inbox"), ("INCRBY", "hand:state", 1), ("EXEC",))
        handle = b"".join(command(*words) for words in steps)

        def call() -> None:
            for _ in range(TOLD_COUNT):
                for words in (("RPUSH", "hand:inbox", "1"), ("LINDEX", "hand:inbox", 0)):
                    link.sendall(command(*words))
                    link.recv(4096)
                link.sendall(handle)
                said = b""
                while said.count(b"\r\n") < 6:  # OK, QUEUED, QUEUED, and the replies of two
                    said += link.recv(4096)

        yield call


def user_client(target: Target) -> Any:
    """A client of the user's."""
    return import_module("redis").Redis.from_url(target.url)


APPEND = """
if redis.call('XLEN', KEYS[2]) ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('XADD', KEYS[1], '*', 'stream', KEYS[2], 'version', ARGV[1] + 1, 'body', ARGV[2])
redis.call('XADD', KEYS[2], '*', 'body', ARGV[2])
return 1
"""


@contextmanager
def append(target: Target) -> Iterator[Callable[[], object]]:
    with user_client(target) as client:
        script, stream, versions = client.register_script(APPEND), f"hand:{uuid.uuid4().hex}", itertools.count(0)
        yield lambda: script(keys=("hand:all", stream), args=(next(versions), RESULT))


TOOLS = (
    ToolContender("once, first call", BY_HAND, "floor", first_call),
    ToolContender("once, replay", BY_HAND, "floor", replay),
    ToolContender("tell and handle a message", BY_HAND, "floor", tell, TOLD_COUNT),
    ToolContender("append of an event", BY_HAND, "floor", append),
    *holdfast_tools.ONCE,
    holdfast_tools.append(user_client),
    holdfast_tools.TELL,
)
ZOMBIES = (holdfast_tools.ZOMBIE,)
