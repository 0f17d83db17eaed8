"""The two ways in which a statement can fail, and what each is in holdfast's words: one place, the cause kept.

1. An error that the server answered with means that nothing was done: each statement is a transaction of its own.
2. But of a statement that was `killed` nobody knows how far it came, where the engine does not say.
3. No answer at all, once a statement was sent, means that nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown

Code: TypeAlias = str | int
"""How an engine names an error: an SQLSTATE, or a number of its own."""
Rows: TypeAlias = list[list[bytes | None]]


class Refused(Exception):
    """The server answered with an error; `rows` are those that came before it."""

    def __init__(self, code: Code, message: str) -> None:
        self.code = code
        self.rows: Rows = []
        super().__init__(message)


class Silence(Exception):
    """No answer: it took too long, or the connection ended."""


@dataclass(frozen=True, slots=True)
class ErrorMapping:
    """What the errors of one engine mean."""

    product: str
    permanent: Mapping[Code, str]
    """What to do about errors that do not pass by themselves."""
    gone: frozenset[Code]
    """The session ends or cannot write any more (a primary that became a standby): dial again."""
    killed: frozenset[Code] = frozenset()
    """The statement was ended by somebody, and may have been carried out."""

    def refused(self, error: Refused) -> HoldfastError:
        what = f"{error} ({error.code})"
        if error.code in self.killed:
            return OutcomeUnknown(f"{self.product} ended the statement: {what}; it may have been carried out")
        if advice := self.permanent.get(error.code):
            return Misconfigured(f"{self.product} refused: {what}; {advice}")
        return BackendUnavailable(f"{self.product} refused: {what}; nothing was done")

    def unreachable(self, error: Exception) -> BackendUnavailable:
        return BackendUnavailable(f"{self.product} cannot be reached: {' '.join(str(error).split())}")

    def too_late(self, seconds: float) -> BackendUnavailable:
        return BackendUnavailable(
            f"{self.product} could not be connected to in time: {seconds:.3g} s were left for it; nothing was sent"
        )

    def unknown(self, what: object) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"no reply from {self.product}: {' '.join(str(what).split())}; the statement may have been carried out"
        )

    def greeting(self, error: BaseException, greeted: bool) -> BaseException:
        """An error of the first words. What is a mistake at the first connection (not `greeted` before) is a fault that
        may pass at a later one: a failover, mostly."""
        if isinstance(error, Silence):
            return BackendUnavailable(f"{self.product} did not answer the greeting: {' '.join(str(error).split())}")
        if isinstance(error, Refused):
            return BackendUnavailable(f"{self.product} refused the greeting: {error} ({error.code})")
        if isinstance(error, Misconfigured) and greeted:
            return BackendUnavailable(f"{self.product} is not what it was: {error}")
        return error
