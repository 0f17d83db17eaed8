"""What an error reply, or an error of a connection, means: ask again elsewhere, try later, or change the settings."""

from __future__ import annotations

from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from .resp import Error, NotRedis

ELSEWHERE = frozenset({"READONLY", "MASTERDOWN", "CLUSTERDOWN", "MOVED", "ASK", "TRYAGAIN"})
"""The server is not, or not now, the one to ask: nothing was carried out."""

_SETTINGS = frozenset({"NOPERM", "NOAUTH", "WRONGPASS"})
_NO_RIGHTS = "user executing the script can't"
"""NOPERM, in a program on Redis 7.0."""
NEEDED = (
    "EVALSHA EVAL GET SET MGET HGET HMGET HSET HDEL HGETALL EXISTS DEL TIME PUBLISH SUBSCRIBE SCAN ZADD ZRANGE "
    "ZREM ZREMRANGEBYSCORE PEXPIRE PTTL"
)
"""What a user must be allowed to do; and CLUSTER SLOTS in a cluster."""


def translated(error: Error) -> Exception:
    """An error reply as one of ours. A server that answers with an error has not carried the request out."""
    if error.code in ("NOAUTH", "WRONGPASS"):
        ours: Exception = Misconfigured(
            f"Redis refused: {error}; put the user and password into the URL: redis://user:password@host"
        )
    elif error.code in _SETTINGS or _NO_RIGHTS in str(error):
        ours = Misconfigured(
            f"Redis refused: {error}; holdfast needs keys and channels that begin with its namespace and '/', and the "
            f"commands {NEEDED} (and CLUSTER SLOTS in a cluster)"
        )
    elif error.code == "NOREPLICAS":
        ours = BackendUnavailable(f"Redis refused: {error}; it has fewer replicas than min-replicas-to-write")
    elif error.code == "OOM":
        ours = BackendUnavailable(f"Redis refused: {error}; raise maxmemory, or give locks a server of their own")
    else:
        ours = BackendUnavailable(f"Redis refused: {error}")
    ours.__cause__ = error
    return ours


def no_answer(error: OSError) -> OutcomeUnknown:
    """A request was sent, and its reply did not come."""
    if isinstance(error, TimeoutError):
        unknown = OutcomeUnknown("Redis did not answer in time; the request may have been carried out")
    else:
        unknown = OutcomeUnknown(
            f"the connection to Redis was lost before the reply ({error}); the request may have been carried out"
        )
    unknown.__cause__ = error
    return unknown


def refused(place: str, error: Exception) -> Exception:
    """Why there is no connection: wrong credentials are the user's to correct, anything else may pass."""
    if isinstance(error, BackendUnavailable | Misconfigured):
        return error
    said = str(error) or type(error).__name__
    if isinstance(error, Error) and (error.code in _SETTINGS or "AUTH" in said):
        ours: Exception = Misconfigured(
            f"Redis at {place} refused the user or password: {said}; they stand in the URL: redis://user:password@host"
        )
    elif isinstance(error, NotRedis):
        ours = Misconfigured(f"what answers at {place} is not Redis: {said}; check the host and the port")
    else:
        ours = BackendUnavailable(
            f"Redis at {place} cannot be reached: {said}; is it running, and reachable from here?"
        )
    ours.__cause__ = error
    return ours


def cannot_read(error: Error) -> bool:
    """Whether the server stumbled over the first line of a program, which servers before Redis 7 do not know."""
    said = str(error).lower()
    return error.code == "ERR" and any(word in said for word in ("compiling", "shebang", "script flag", "engine"))


def redirection(error: Error) -> tuple[int, str, int]:
    """Of "MOVED 866 10.0.0.7:6381": the slot and the node. The host is empty if it is the node that was asked."""
    _, slot, address = str(error).split(" ")[:3]
    host, _, port = address.rpartition(":")
    return int(slot), host, int(port)
