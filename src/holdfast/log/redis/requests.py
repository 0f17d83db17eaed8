"""What is asked of the server, and what an error means.

1. Every change is one program, which is atomic, and which may be carried out again with the same result: a client sends
   a request again when its connection breaks, unseen by us (redis-py does, by default).
2. A change whose reply is lost for good is `OutcomeUnknown`, with what to do. A refusal of the server, and an error of
   a read, is raised as it comes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ...errors import OutcomeUnknown
from .keys import program

T = TypeVar("T")
Word: TypeAlias = str | int
_NOT_DONE = frozenset({"ResponseError", "DataError", "AuthenticationError", "MaxConnectionsError"})
"""redis-py's errors that mean: it was not carried out."""
_PASSING = frozenset({"ReadOnlyError", "ClusterDownError", "MasterDownError", "TryAgainError"})
"""Those among them that a copy of a request meets while another server takes over."""


class RedisRequest(NamedTuple):
    """A program by its name, with its keys and words."""

    name: str
    keys: Sequence[str]
    words: Sequence[Word]

    def by_digest(self) -> list[object]:
        """As a command, for a server that knows the program."""
        return ["EVALSHA", program(self.name).digest, *self._rest()]

    def by_text(self) -> list[object]:
        """As a command, for a server that does not."""
        return ["EVAL", program(self.name).text, *self._rest()]

    def _rest(self) -> list[object]:
        # In UTF-8, whatever encoding the client has.
        words = [word.encode() if type(word) is str else word for word in (*self.keys, *self.words)]
        return [len(self.keys), *words]


RedisExchange: TypeAlias = Generator[RedisRequest, Any, T]
"""What one call sends and receives: replies are nested lists of bytes and numbers."""


def change(request: RedisRequest, what: str, again: str) -> RedisExchange[Any]:
    """Carry out a program that writes (rule 2)."""
    try:
        return (yield request)
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if kinds & _NOT_DONE and not kinds & _PASSING:
            raise
        raise OutcomeUnknown(f"whether {what} is not known: {error}; {again}") from error


def is_unknown_program(error: Exception) -> bool:
    """Whether the server does not know the program yet; then nothing was done."""
    return any(kind.__name__ == "NoScriptError" for kind in type(error).__mro__)
