"""Finds what carries out a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..relational.statement_runner import Steps
from . import errors, lock_table, session_locks, user_locks  # noqa: F401  each makes its statements known
from .handshake import SCHEMA, make_schema
from .packets import Result
from .statement_texts import HANDLERS

if TYPE_CHECKING:
    from .session import MariaDBSession


def carry_out(session: MariaDBSession, words: bytes) -> Steps[list[Result]]:
    if words in SCHEMA:
        return make_schema(session, words)
    for pattern, handler in HANDLERS:
        if (match := pattern.fullmatch(words)) is not None:
            return handler(session, match)
    raise errors.syntax(words.decode("utf-8", "replace"))
