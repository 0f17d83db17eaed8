"""The token that etcd gives for a user and a password, obtained beside the requests that need it.

1. One log-in serves all who wait: etcd takes its time to compare a password, on purpose.
2. It has a request timeout of its own; whoever waits for it does so until its own deadline, and finds the token next
   time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NEW_EVENT, NOW, Flow, Spawn, WaitDial, WakeEvent
from ...errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from .connector import Connector
from .error_mapping import Unauthenticated
from .rpc import Answer, Rejected, Rpc, authenticate


class _Attempt:
    def __init__(self) -> None:
        self.waiters: list[WakeEvent] = []
        self.over = False
        self.failure: HoldfastError | None = None


class Login:
    """Keeps the connector's token."""

    def __init__(
        self,
        connector: Connector,
        user: str,
        password: str,
        patience_s: float,
        ask: Callable[[Sequence[Rpc], float], Flow[list[Answer | Rejected]]],
    ) -> None:
        self._connector = connector
        self.user = user
        self._rpc = authenticate(user, password)
        self._patience_s = patience_s
        self._ask = ask
        self._attempt: _Attempt | None = None

    def replace(self, old: str, deadline: float) -> Flow[None]:
        """Have another token than this one, which is not (or no longer) good."""
        if self._connector.token != old:
            return
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt()
            started: bool | None = yield Spawn(self._log_in(attempt))
            if started is False:  # no thread can be had
                yield from self._log_in(attempt)
        event: WakeEvent = yield NEW_EVENT
        attempt.waiters.append(event)
        now: float = yield NOW
        if not attempt.over:
            yield WaitDial(event, max(0.0, deadline - now))
        if attempt.failure is not None:
            raise attempt.failure
        if not attempt.over:
            raise BackendUnavailable(f"etcd did not let {self.user!r} log in within {deadline - now:.3g} s")

    def _log_in(self, attempt: _Attempt) -> Flow[None]:
        try:
            now: float = yield NOW
            [reply] = yield from self._ask((self._rpc,), now + self._patience_s)
            if isinstance(reply, Rejected):
                raise Misconfigured(f"etcd does not let {self.user!r} log in: {reply.message}")
            self._connector.token = reply["token"]
        except KeyError:
            attempt.failure = BackendUnavailable("etcd did not let us log in: it gave no token")
        except (OutcomeUnknown, Unauthenticated) as error:
            attempt.failure = BackendUnavailable(f"etcd did not let us log in: {error}")
        except HoldfastError as error:
            attempt.failure = error
        finally:
            attempt.over = True
            self._attempt = None
            for event in attempt.waiters:
                event.set()

    def forget(self) -> None:
        """In a forked child: whoever logs in is not here."""
        self._attempt = None
