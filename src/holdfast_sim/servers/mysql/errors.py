"""The errors that MariaDB answers with: number, SQLSTATE and words, as 10.11 says them."""

from __future__ import annotations

from ..relational.statement_runner import ServerError


def access_denied(user: str, with_password: bool) -> ServerError:
    using = "YES" if with_password else "NO"
    return ServerError(1045, "28000", f"Access denied for user '{user}'@'127.0.0.1' (using password: {using})")


def unknown_database(name: str) -> ServerError:
    return ServerError(1049, "42000", f"Unknown database '{name}'")


def unknown_command() -> ServerError:
    return ServerError(1047, "08S01", "Unknown command")


def syntax(text: str) -> ServerError:
    words = "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version"
    return ServerError(1064, "42000", f"{words} for the right syntax to use near '{text[:80]}' at line 1")


def no_table(database: str, table: str) -> ServerError:
    return ServerError(1146, "42S02", f"Table '{database}.{table}' doesn't exist")


def no_procedure(database: str, procedure: str) -> ServerError:
    return ServerError(1305, "42000", f"PROCEDURE {database}.{procedure} does not exist")


def no_statement(number: int) -> ServerError:
    words = f"Unknown prepared statement handler ({number}) given to mysqld_stmt_execute"
    return ServerError(1243, "HY000", words)


def unknown_thread(number: int) -> ServerError:
    return ServerError(1094, "HY000", f"Unknown thread id: {number}")


def interrupted() -> ServerError:
    return ServerError(1317, "70100", "Query execution was interrupted")


def out_of_order() -> ServerError:
    return ServerError(1156, "08S01", "Got packets out of order")


def too_many() -> ServerError:
    return ServerError(1040, "", "Too many connections")


def read_only() -> ServerError:
    words = "The MariaDB server is running with the --read-only option so it cannot execute this statement"
    return ServerError(1290, "HY000", words)


def deadlock() -> ServerError:
    return ServerError(1213, "40001", "Deadlock found when trying to get lock; try restarting transaction")


def lock_wait_timeout() -> ServerError:
    return ServerError(1205, "HY000", "Lock wait timeout exceeded; try restarting transaction")


def table_full(table: str) -> ServerError:
    return ServerError(1114, "HY000", f"The table '{table}' is full")


def alone() -> ServerError:
    """What `holdfast_hear` signals."""
    return ServerError(31000, "45000", "the request connection has ended")
