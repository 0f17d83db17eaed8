"""The errors that PostgreSQL answers with: SQLSTATE and words."""

from __future__ import annotations

from ..relational.statement_runner import ServerError


def refusal(state: str, message: str) -> ServerError:
    return ServerError(0, state, message)


def password_failed(user: str) -> ServerError:
    return refusal("28P01", f'password authentication failed for user "{user}"')


def no_database(name: str) -> ServerError:
    return refusal("3D000", f'database "{name}" does not exist')


def too_many() -> ServerError:
    return refusal("53300", "sorry, too many clients already")


def syntax(words: str) -> ServerError:
    return refusal("42601", f'syntax error at or near "{words.split(maxsplit=1)[0] if words.split() else ""}"')


def no_relation(name: str) -> ServerError:
    return refusal("42P01", f'relation "{name}" does not exist')


def no_function(name: str) -> ServerError:
    return refusal("42883", f"function {name} does not exist")


def not_prepared(name: str) -> ServerError:
    return refusal("26000", f'prepared statement "{name}" does not exist')


def prepared_before(name: str) -> ServerError:
    return refusal("42P05", f'prepared statement "{name}" already exists')


def canceled(why: str) -> ServerError:
    """`why`: "user request" or "statement timeout"."""
    return refusal("57014", f"canceling statement due to {why}")


def terminated() -> ServerError:
    return refusal("57P01", "terminating connection due to administrator command")


def idle_too_long() -> ServerError:
    return refusal("57P05", "terminating connection due to idle-session timeout")


def deadlock() -> ServerError:
    return refusal("40P01", "deadlock detected")


def lock_timeout() -> ServerError:
    return refusal("55P03", "canceling statement due to lock timeout")


def read_only(verb: str) -> ServerError:
    return refusal("25006", f"cannot execute {verb} in a read-only transaction")


def disk_full() -> ServerError:
    return refusal("53100", 'could not extend file "base/5/16385": No space left on device')
