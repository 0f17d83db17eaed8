"""The blocking wire: each request on a panel of its own; there are as many as requests at the same moment.

A connection that has ended says nothing of its node: a request that it did not answer is sent to that node once more,
by a new one. Every program may be carried out twice.
"""

from __future__ import annotations

from .... import clock
from ....errors import BackendUnavailable
from ..fanout import DECIDED, KEPT, Fanout, Tally
from .dialling import NodeDiallers
from .greeting import Manners
from .node.dialling import Dialler
from .panel import Panel

IDLE = 16
"""Panels that are kept for the next request."""


class RedlockWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, diallers: tuple[Dialler, ...], places: tuple[str, ...], manners: Manners) -> None:
        self._places = places
        self._node_diallers = diallers
        self._manners = manners
        self._begin()

    def _begin(self) -> None:
        self._idle: list[Panel] = []
        self._diallers = NodeDiallers(self._node_diallers, self._manners)
        self._closed = False

    def call(self, request: Fanout, timeout: float) -> Tally:
        try:
            panel = self._idle.pop()
        except IndexError:
            panel = self._open()
        absent = self._diallers.absent
        try:
            if panel.suspects:
                panel.drop_suspects()
            if request.dial:
                panel.dial(range(len(self._places)), patiently=True)
            elif panel.missing and not absent.issuperset(panel.missing):
                panel.dial([node for node in panel.missing if node not in absent])
            tally = panel.ask(request, timeout)
            if panel.broken:
                tally = self._ask_again(panel, request, tally, timeout)
            if request.dial:
                panel.remembered(tally.said)
        except BaseException:  # interrupted: what is owed is not known
            panel.close()
            raise
        if len(self._idle) >= IDLE:
            panel.close()
        else:
            self._idle.append(panel)
        if self._closed:  # meanwhile: looked at after it was put back, so that either of us closes it
            self.close()
        return tally

    def _ask_again(self, panel: Panel, request: Fanout, tally: Tally, timeout: float) -> Tally:
        broken, panel.broken = panel.broken, []
        if request.until in (DECIDED, KEPT) and max(tally.yes, tally.voted) >= tally.need:
            return tally
        end = clock.now() + timeout
        panel.dial(broken)
        return panel.ask_again(broken, request, tally, max(0.0, end - clock.now()))

    def _open(self) -> Panel:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed")
        panel = Panel(self._places, len(self._places) // 2 + 1, self._diallers.dial, self._lost)
        panel.dial(range(len(self._places)))
        return panel

    def _lost(self, node: int) -> None:
        """A node did not answer on a connection that it had: nobody counts on it until it was reached again."""
        self._diallers.absent.add(node)
        for panel in list(self._idle):
            panel.suspects.add(node)

    def wait(self, owner: str, timeout: float) -> None:
        raise NotImplementedError("nothing is pushed on a quorum")

    def before_fork(self) -> None:
        pass  # requests under way are on panels that the child does not touch

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self.close()
        self._begin()

    def close(self) -> None:
        self._closed = True
        self._diallers.close()
        while self._idle:
            self._idle.pop().close()
