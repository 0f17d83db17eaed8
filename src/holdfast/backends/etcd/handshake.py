"""The token that etcd gives for a user and a password, obtained beside the requests that need it.

1. One log-in serves all who wait: etcd takes its time to compare a password, on purpose.
2. It has a request timeout of its own; whoever waits for it does so until its own deadline, and finds the token next
   time.
3. It goes through consensus, and changes nothing: one that was not answered, because its member hangs or a leader is
   being elected, is tried again within this time, and no member has more than its share of it.
4. Where passwords are switched off there is no token, and none is needed: so do etcd's own clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NEW_EVENT, NOW, Flow, Sleep, Spawn, WaitDial, WakeEvent
from ...errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from .connector import Connector
from .error_mapping import Unauthenticated
from .rpc import Answer, Rejected, Rpc, authenticate

BETWEEN_TRIES_S = 0.1
PASSWORDS_ARE_OFF = "authentication is not enabled"


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

    def replace(self, old: str | None, deadline: float) -> Flow[None]:
        """Have another token than this one, which is not (or no longer) good."""
        if self._connector.token != old:
            return
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt()
            try:
                started: bool | None = yield Spawn(self._log_in(attempt))
            except BaseException:  # interrupted: perhaps nobody logs in, and nobody is to wait for it
                self._attempt = None
                raise
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
            reply = yield from self._answer()
            if not isinstance(reply, Rejected):
                self._connector.token = reply["token"]
            elif PASSWORDS_ARE_OFF in reply.message:
                self._connector.token = ""
            else:
                raise Misconfigured(reply.message)
        except KeyError:
            attempt.failure = BackendUnavailable("etcd did not let us log in: it gave no token")
        except (OutcomeUnknown, Unauthenticated) as error:
            attempt.failure = BackendUnavailable(f"etcd did not let us log in: {error}")
        except Misconfigured as error:
            attempt.failure = Misconfigured(
                f"etcd does not let {self.user!r} log in: {error}; see user:password@ in the URL"
            )
        except HoldfastError as error:
            attempt.failure = error
        finally:
            attempt.over = True
            if self._attempt is attempt:
                self._attempt = None
            for event in attempt.waiters:
                event.set()

    def _answer(self) -> Flow[Answer | Rejected]:
        """Of the first member that has one."""
        now: float = yield NOW
        end, share_s = now + self._patience_s, self._patience_s / self._connector.count
        while True:
            try:
                [reply] = yield from self._ask((self._rpc,), min(end, now + share_s))
                return reply
            except OutcomeUnknown:
                now = yield NOW
                if now + BETWEEN_TRIES_S >= end:
                    raise
            yield Sleep(BETWEEN_TRIES_S)
            now = yield NOW

    def forget(self) -> None:
        """In a forked child: whoever logs in is not here."""
        self._attempt = None
