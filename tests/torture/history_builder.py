"""Histories written by hand, for the checkers: times are small numbers, what does not matter is left out."""

from __future__ import annotations

from typing import Any

from holdfast.torture.history import Commit, Discipline, Final, History, Operation, Run, Verb


class HistoryBuilder:
    """A history that is told grant by grant.

    >>> builder = HistoryBuilder()
    >>> grant = builder.grant("c1", asked=0, got=2, token=1, let_go=5, done=6)
    >>> [operation.verb for operation in builder.history().operations]
    ['acquire', 'release']
    """

    def __init__(self, discipline: Discipline = "claim-before-read", **run: Any) -> None:
        self._history = History(Run("told", discipline=discipline, **run), ended=10**9)
        self._seq = 0

    def operation(self, client: str, verb: Verb, invoked: int, returned: int | None, **facts: Any) -> Operation:
        self._seq += 1
        facts = {"name": "a", "outcome": "info" if returned is None else "ok"} | facts
        operation = Operation(client, 1, self._seq, verb, invoked=invoked, returned=returned, **facts)
        self._history.operations.append(operation)
        return operation

    def grant(
        self,
        client: str,
        *,
        asked: int,
        got: int,
        token: int = 0,
        let_go: int | None = None,
        done: int | None = None,
        held: bool = True,
        lost: int | None = None,
        name: str = "a",
        **facts: Any,
    ) -> Operation:
        """A grant, and how it ended: released (from `let_go` to `done`), lost, or not at all."""
        acquire = self.operation(client, "acquire", asked, got, name=name, token=token, **facts)
        own: dict[str, Any] = {"of": acquire.seq, "token": token, "name": name}
        if lost is not None:
            self.operation(client, "lost", lost, lost, error="expired", **own)
        if let_go is not None:
            self.operation(client, "release", let_go, done, held=held if done is not None else None, **own)
        return acquire

    def queued(self, acquire: Operation, at: int, until: int) -> None:
        self.operation(acquire.client, "queued", at, at, of=acquire.seq, name=acquire.name, until=until)

    def commit(self, commit: Commit, acknowledged: bool = True) -> None:
        """A commit, and the operation that made it."""
        facts: dict[str, Any] = {"name": commit.name, "token": commit.token, "parent": commit.parent}
        if commit.verb == "write" and acknowledged:
            facts["version"] = commit.number
        end = commit.time + 1 if acknowledged else None
        made = self.operation(commit.client, commit.verb, commit.time - 1, end, **facts)
        commit.process, commit.seq = 1, made.seq
        self._history.commits.append(commit)

    def writes(self, *parents: int, clients: str = "", tokens: tuple[int, ...] = (), name: str = "a") -> None:
        """Acknowledged writes, each computed from the version that is given; versions are numbered from 1."""
        for number, parent in enumerate(parents, len(self._history.commits) + 1):
            client = clients[number - 1] if clients else f"c{number}"
            token = tokens[number - 1] if tokens else number
            self.commit(Commit(number, "write", name, client, 0, 0, token, 10 * number, number - 1, parent))

    def ends_with(self, version: int, *members: int, counter: int | None = None, name: str = "a") -> None:
        count = len(members) if counter is None else counter
        self._history.finals[name] = Final(name, version, count, frozenset(members))

    def history(self) -> History:
        self._history.operations.sort(key=lambda operation: operation.invoked)
        for index, operation in enumerate(self._history.operations):
            operation.index = index
        return self._history
