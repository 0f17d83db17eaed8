"""Everything that holdfast raises.

    HoldfastError
    ├── NotAcquired          (TimeoutError)     the lock was not granted in time
    ├── LeaseLost                               the lease ended before its holder released it
    ├── FenceRejected                           a stale holder touched a fenced resource; nothing was changed
    ├── VersionConflict                         somebody else was quicker; nothing was changed
    ├── Missing              (LookupError)      there is nothing to change; nothing was changed
    ├── DeadlockDetected                        this claim closes a circle of waiters
    ├── AttemptInProgress    (TimeoutError)     somebody else is at it, and was not done in time
    ├── AttemptInDoubt                          the last attempt died, and a person has to decide
    ├── AttemptFailed                           the last attempt failed for good
    ├── InboxFull            (TimeoutError)     an actor has too many messages; this one was not told
    ├── NoAnswer             (TimeoutError)     an actor has not answered in time; the message stays
    ├── MessageFailed                           an actor could not handle the message: it is a dead letter
    ├── PayloadMismatch      (ValueError)       the key was used before, for another payload
    ├── BackendUnavailable   (ConnectionError)  the engine did not take the request
    │   └── OutcomeUnknown                      the engine may or may not have carried it out
    └── Misconfigured        (ValueError)       bad input or settings; nothing was sent

Each message says what happened, to which name, and what to do. The facts are attributes too, for programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class HoldfastError(Exception):
    """The root of all errors of holdfast."""


class NotAcquired(HoldfastError, TimeoutError):
    """The lock was not granted in time. Nothing is held and nothing is left in the line."""

    def __init__(self, name: str, waited: float, *, ahead: int | None = None, advice: str | None = None) -> None:
        self.name = name
        self.waited = waited
        self.ahead = ahead
        self.advice = advice
        line = "" if not ahead else f", {ahead} claim{'' if ahead == 1 else 's'} ahead of it"
        super().__init__(
            f"{name!r} was not acquired within {waited:.3g} s{line}; "
            + (advice or f"wait longer (timeout=), or see who holds it with survey({name!r})")
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_not_acquired, (self.name, self.waited, self.ahead, self.advice))


def _rebuild_not_acquired(name: str, waited: float, ahead: int | None, advice: str | None) -> NotAcquired:
    return NotAcquired(name, waited, ahead=ahead, advice=advice)


_WHY_LOST = {
    "expired": "its validity ended before a renewal succeeded",
    "refused": "the engine no longer knows this claim",
    "session": "the session with the engine ended",
    "evicted": "it was evicted by hand",
    "forked": "this process is a fork of the holder; a child holds nothing",
    "max_hold": "it was held for max_hold",
    "closed": "its coordinator was closed",
}


class LeaseLost(HoldfastError):
    """The lease ended before its holder released it: stop the work, another holder may have begun."""

    def __init__(self, name: str, token: int, reason: str) -> None:
        self.name = name
        self.token = token
        self.reason = reason
        super().__init__(
            f"the lease on {name!r} (token {token}) was lost: {_WHY_LOST.get(reason, reason)}; "
            "stop the protected work, another holder may have begun"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (LeaseLost, (self.name, self.token, self.reason))


class FenceRejected(HoldfastError):
    """A newer holder has claimed the resource. Nothing was changed."""

    def __init__(self, resource: str, token: int, mark: int | None) -> None:
        self.resource = resource
        self.token = token
        self.mark = mark
        newer = f"token {mark} has claimed it since" if mark is not None else "nothing was claimed with it"
        super().__init__(
            f"the fence at {resource!r} refused token {token}: {newer}; nothing was changed. "
            "This holder is stale: stop, and take the lock anew"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (FenceRejected, (self.resource, self.token, self.mark))


class VersionConflict(HoldfastError):
    """It is not at the version that was read: somebody else was quicker. Nothing was changed.

    `resource` is the table or the kind of key, `key` which one, `version` what was expected, and `tries` how often it
    was tried.
    """

    def __init__(self, resource: str, key: object, version: object, *, tries: int = 1) -> None:
        self.resource = self.table = resource
        self.key = dict(key) if isinstance(key, Mapping) else key
        self.version = version
        self.tries = tries
        if version is None:
            at = "already there"
        elif isinstance(version, (int, str)):
            at = f"not at version {version!r} any more"
        else:  # the version is the value itself, which does not belong in a log
            at = "not as it was read any more"
        often = "" if tries == 1 else f", in none of {tries} tries"
        instead = (
            "Read it again and retry" if tries == 1 else "Allow more attempts, or take a lock: many change it at once"
        )
        super().__init__(f"{resource} {self.key!r} is {at}{often}; nothing was changed. {instead}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_conflict, (self.resource, self.key, self.version, self.tries))


def _rebuild_conflict(resource: str, key: object, version: object, tries: int) -> VersionConflict:
    return VersionConflict(resource, key, version, tries=tries)


class Missing(HoldfastError, LookupError):
    """What is to be read or changed is not there. Nothing was changed."""

    def __init__(self, resource: str, key: object) -> None:
        self.resource = resource
        self.key = dict(key) if isinstance(key, Mapping) else key
        super().__init__(f"{resource} {self.key!r} is not there; nothing was changed. Create it first")

    def __reduce__(self) -> tuple[object, ...]:
        return (Missing, (self.resource, self.key))


_CROSSED = "Take the names in one call (lock_all), or always in the same order"
_ALONE = "It waits for itself: release what it holds first; a plain lock that is taken again should be a reentrant()"


class DeadlockDetected(HoldfastError):
    """This claim closes a circle of holders that wait for each other. `circle` says who, in words."""

    def __init__(self, name: str, circle: Sequence[str]) -> None:
        self.name = name
        self.circle = tuple(circle)
        super().__init__(
            f"waiting for {name!r} would never end: "
            + "; ".join(circle)
            + ". "
            + (_ALONE if len(circle) == 1 else _CROSSED)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (DeadlockDetected, (self.name, self.circle))


class AttemptInProgress(HoldfastError, TimeoutError):
    """Another attempt of the same key is under way and was not done in time. Nothing was done by this one."""

    def __init__(self, name: str, key: str, waited: float, where: str) -> None:
        self.name = name
        self.key = key
        self.waited = waited
        self.where = where
        super().__init__(
            f"{key!r} of {name!r} is being done by another attempt ({where}), which had no result within "
            f"{waited:.3g} s; nothing was done here: wait longer (wait=), or ask again later"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AttemptInProgress, (self.name, self.key, self.waited, self.where))


def _command(verb: str, *names: str) -> str:
    """A command of holdfast to be pasted into a shell, whatever the names are."""
    from shlex import join  # not at the top: `import holdfast` stays light

    return f"holdfast {verb} {join(['--', *names] if any(name[:1] == '-' for name in names) else names)}"


class AttemptInDoubt(HoldfastError):
    """An attempt ended without a word (its process died, mostly): it may have done its work or not."""

    def __init__(self, name: str, key: str, token: int, where: str) -> None:
        self.name = name
        self.key = key
        self.token = token
        self.where = where
        super().__init__(
            f"an attempt of {key!r} ({name!r}) died ({where}, token {token}): it may have done its work or not, and "
            "takeover='refuse' leaves that to a person. Find out what it did; then this lets the next attempt begin: "
            + _command(f"once forget --token {token}", name, key)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AttemptInDoubt, (self.name, self.key, self.token, self.where))


class AttemptFailed(HoldfastError):
    """An earlier attempt of the same key failed, and that is remembered. Nothing was done by this one."""

    def __init__(self, name: str, key: str, error: str) -> None:
        self.name = name
        self.key = key
        self.error = error
        super().__init__(
            f"{key!r} of {name!r} failed before ({error}), and on_error='remember' keeps it so; this lets another "
            f"attempt begin: {_command('once forget', name, key)}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AttemptFailed, (self.name, self.key, self.error))


class PayloadMismatch(HoldfastError, ValueError):
    """The same key came with another payload. Nothing was done."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        self.key = key
        super().__init__(
            f"{key!r} of {name!r} was used before, for another payload; nothing was done. Use a new key for new work, "
            "and the same payload for a retry"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (PayloadMismatch, (self.name, self.key))


class InboxFull(HoldfastError, TimeoutError):
    """An actor's inbox is full, and was full until the time was over. The message was not told."""

    def __init__(self, name: str, key: str, count: int, waited: float) -> None:
        self.name = name
        self.key = key
        self.count = count
        self.waited = waited
        super().__init__(
            f"the inbox of {key!r} ({name!r}) was full for {waited:.3g} s, with {count} messages; the message was not "
            "told: wait longer (timeout=), or run more workers"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (InboxFull, (self.name, self.key, self.count, self.waited))


class NoAnswer(HoldfastError, TimeoutError):
    """There is no answer in time (`waited`), or no longer (None). The message was told, and is handled all the same."""

    def __init__(self, name: str, key: str, message_id: str, waited: float | None) -> None:
        self.name = name
        self.key = key
        self.message_id = message_id
        self.waited = waited
        super().__init__(
            f"{key!r} ({name!r}) has not answered within {waited:.3g} s; the message stays in its inbox: ask again "
            f"with message_id={message_id!r} for the answer, or see `{_command('actors ls', name)}`"
            if waited is not None
            else f"{key!r} ({name!r}) has handled the message {message_id!r}, and its answer is not kept any more"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (NoAnswer, (self.name, self.key, self.message_id, self.waited))


class MessageFailed(HoldfastError):
    """An actor's handler has failed at this message as often as it may. The message is a dead letter now."""

    def __init__(self, name: str, key: str, message_id: str, error: str) -> None:
        self.name = name
        self.key = key
        self.message_id = message_id
        self.error = error
        super().__init__(
            f"{key!r} ({name!r}) could not handle the message {message_id!r}: {error}; it is a dead letter now: "
            f"`{_command('actors retry', name, key, message_id)}` tells it again"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (MessageFailed, (self.name, self.key, self.message_id, self.error))


class BackendUnavailable(HoldfastError, ConnectionError):
    """The engine could not be reached, or did not take the request."""


class OutcomeUnknown(BackendUnavailable):
    """The request was sent and no reply came: it may or may not have been carried out."""


class Misconfigured(HoldfastError, ValueError):
    """Bad input, or settings that cannot keep a promise that was required. Nothing was sent."""
