"""The log of a coordinator: standard `logging`, to the logger `holdfast.lock`.

1. INFO is what an operator wants to know: lost and why, jeopardy and recovered, unreleased, deadlock, refused, asked,
   and that the engine is out of reach or back. DEBUG is each operation: acquired, timed_out, failed, renewed, released.
2. One line a person can read; the facts are fields of the record, too (`extra=`): `kind`, `lock` (a record has a `name`
   of its own), `family`, `owner`, `token`, `ttl`, `waited` or `held`, `left`, `reason`, `engine`.
3. Repeated news is limited, by kind and family (`log_limit`); the next line says how many were left out
   (`suppressed`). DEBUG is not limited: whoever turns it on wants all.
4. No secret is in it: passwords of URLs in reasons are taken out, in the address and among the options.
5. A forked child, which holds nothing, does not log the losses of its parent's leases.
"""

from __future__ import annotations

import re
import time
from functools import partial

from .event import Event

MAX_REASON_BYTES = 500

_LINES = {
    "lost": "lost {lock!r} (token {token}) after {seconds:.3g} s: {reason}",
    "jeopardy": "{lock!r} (token {token}) is in jeopardy, a renewal failed: {reason}",
    "recovered": "{lock!r} (token {token}) has recovered: a renewal succeeded",
    "unreleased": "{lock!r} (token {token}) could not be released, the engine is told later: {reason}",
    "deadlock": "deadlock at {lock!r} after {seconds:.3g} s: {reason}",
    "refused": "a write under {lock!r} was refused, token {token} is stale: {reason}",
    "asked": "the holder of {lock!r} (token {token}) was asked to give way",
    "unreachable": "{engine} is out of reach, as {lock!r} has shown: {reason}",
    "reachable": "{engine} answers again after {seconds:.3g} s, as {lock!r} has shown",
}
_DETAILS = {
    "acquired": "acquired {lock!r} (token {token}) after {seconds:.3g} s",
    "timed_out": "{lock!r} was not acquired within {seconds:.3g} s",
    "failed": "{lock!r} could not be asked for: {reason}",
    "renewed": "renewed {lock!r} (token {token}) with {left:.3g} s left",
    "released": "released {lock!r} (token {token}) after {seconds:.3g} s",
}
_WAITED = frozenset({"acquired", "timed_out", "failed", "deadlock"})


class LockLog:
    """Writes events; one per coordinator and process."""

    def __init__(self, engine: str) -> None:
        import logging  # not at the top: `import holdfast` stays light

        self._engine = engine
        self._logger = logging.getLogger("holdfast.lock")
        self._levels = dict.fromkeys(_LINES, logging.INFO) | dict.fromkeys(_DETAILS, logging.DEBUG)
        self.verbose = partial(self._logger.isEnabledFor, logging.DEBUG)
        from .log_limit import LogLimit, left_out, limit_repeats

        self._limit, self._left_out = LogLimit(), left_out
        limit_repeats()

    def wants(self, kind: str, reason: str) -> bool:
        """Whether the level of this kind is enabled."""
        return reason != "forked" and self._logger.isEnabledFor(self._levels[kind])

    def write(self, event: Event) -> None:
        """One line."""
        suppressed = 0
        if event.kind in _LINES:
            known = self._limit.admit((event.kind, event.family), time.monotonic())
            if known is None:
                return
            suppressed = known
        facts: dict[str, object] = {
            "kind": event.kind,
            "engine": self._engine,
            "lock": event.name,
            "family": event.family,
            "owner": event.owner,
            "token": event.token,
            "ttl": event.ttl,
            "reason": without_passwords(event.reason),
            "waited" if event.kind in _WAITED else "held": event.seconds,
            "left": event.left,
        }
        line = (_LINES.get(event.kind) or _DETAILS[event.kind]).format(seconds=event.seconds, **facts)
        if suppressed:
            facts["suppressed"] = suppressed
            line += self._left_out(suppressed)
        self._logger.log(self._levels[event.kind], "%s", line, extra=facts)


def without_passwords(text: str) -> str:
    """One line, not too long, without the user and the password of a URL.

    >>> without_passwords("cannot reach redis://app:s3cret@db:6379/0?ssl_password=s3cret")
    'cannot reach redis://…@db:6379/0?ssl_password=…'
    """
    line = re.sub(r"://[^/\s@]*(?:/[^/\s@]*)*@", "://…@", " ".join(text.split()))
    line = re.sub(r"(?i)(\b\w*pass(?:word|wd|phrase)?\w*=)[^&\s,;'\"]+", r"\1…", line)
    return line if len(line) <= MAX_REASON_BYTES else line[:MAX_REASON_BYTES] + "…"
