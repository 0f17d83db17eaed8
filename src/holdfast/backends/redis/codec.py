"""Verbs as calls of programs: the same for the blocking and the asyncio wire.

What a claim says of itself is written once per ask and actor and kept, because a lock is taken again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from ...model import Claim, LockSpec, LockView
from ..execute import us
from ..queue_backend import Allow, Evict, Recover, Release, Renew, Take, patience
from .programs import Program, program
from .replies import allowed, one_taken, released_now_or_before, said, taken, view_of
from .resp import bulks

DAY_MS = 24 * 3600 * 1000
YEAR_MS = 366 * DAY_MS
NOWHERE = "-"
"""The channel of a waiter that cannot be reached."""
NOT_YET_HEARING = "?"
"""The channel of a claim that would have to subscribe before it queues, and so does not queue yet."""

SAFE = "!\"#$%&'()*+,:;<=>?@[\\]^`{|}"
KEPT_COUNT = 1024


def channels_of(namespace: str) -> str:
    """How the channels of a namespace begin: ASCII without a space, because they stand in words of a claim."""
    return f"{quote(namespace, safe=SAFE)}/wake/"


class Order(NamedTuple):
    """One call: which program, with which words after it, and how to read the reply."""

    program: Program
    size: int
    words: bytes
    read: Callable[[Any], Any]
    key: bytes
    after_loss: Callable[[Any], Any] | None = None
    """How to read the reply to a second call, if the first may have been carried out."""

    @property
    def read_again(self) -> Callable[[Any], Any]:
        return self.after_loss or self.read


class SpecWords:
    """What is the same in every call with the same options, whatever the name."""

    __slots__ = ("after", "before", "detail", "handing", "leaving", "releasing", "size", "taking", "trying")

    def __init__(self, before: str, after: str, left: str, ending: str, calls: tuple[str, str, str], ttl: int) -> None:
        self.taking, self.releasing, self.handing = calls
        """A take, a release, and a release with a channel, up to the key."""
        self.before = before
        """The detail of a claim up to the actor; after it, and what follows: in a take, in one that does not queue, and
        in one of many."""
        self.after = f"{after}\r\n{ending}"
        self.trying = f"{after}\r\n{left}$1\r\n0\r\n"
        self.detail = f"{after}\r\n{left}"
        self.size = 1 + len(before.encode()) + len(after.encode())
        """Of the detail and what stands before it, but for the owner, the channel and the actor."""
        self.leaving = bulks(ttl).decode()
        """What follows the owner in a release that does not linger."""


class Written:
    """What is the same in every call for one spec."""

    __slots__ = ("key", "releasing", "spec", "taking", "words")

    def __init__(self, spec: LockSpec, key: str, words: SpecWords) -> None:
        self.spec = spec
        self.words = words
        self.key = key
        """Its line, as one word; then calls up to the word that says whose they are."""
        self.taking = f"{words.taking}{key}$"
        self.releasing = f"{words.releasing}{key}$"


class Codec:
    """Writes calls for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int, *, indexed: bool = True, flags: bool = True) -> None:
        """`indexed`: names for which somebody waits are kept in one key, which a cluster cannot have.

        `flags`: the server can read the first line of programs that have one.
        """
        self._lines = f"{namespace}/line/"
        self.index = f"{namespace}/contended" if indexed else None
        self._rates = f"{namespace}/rate/".encode()
        self._host = host
        self._pid = pid
        self._written: dict[int, Written] = {}
        self._words: dict[object, SpecWords] = {}
        self._take = program("take")
        self._flags = flags
        self._choose()

    def _choose(self) -> None:
        chosen = map(self.chosen, ("release", "releases", "renew", "evict", "recover"))
        self._release, self.releases, self._renew, self._evict, self._recover = chosen

    def chosen(self, verb: str) -> Program:
        """The program of a verb, as this server can read it."""
        one = program(verb)
        return one if self._flags else one.plain or one

    def do_without_flags(self) -> None:
        """The server is an old one: see `programs`."""
        if self._flags:
            self._flags = False
            self._choose()
            self._written.clear()
            self._words.clear()

    def line(self, name: str) -> bytes:
        """The key of a name."""
        return (self._lines + name).encode()

    # Calls

    def taking(self, claim: Claim, wake: str, queue: bool = True) -> bytes:
        """A take of one claim, whole: the uncontended path has no time for more than this."""
        spec = claim.spec
        kept = self._written.get(id(spec))
        if kept is None or kept.spec is not spec:
            kept = self._write(spec)
        owner, actor, words = claim.owner, claim.actor, kept.words
        size = len(owner) + len(wake) + len(actor) + words.size
        after = words.after if queue else words.trying
        return f"{kept.taking}{size}\r\n{owner} {wake}{words.before}{actor}{after}".encode()

    def releasing(self, claim: Claim) -> bytes:
        """A release that does not linger, whole."""
        spec = claim.spec
        kept = self._written.get(id(spec))
        if kept is None or kept.spec is not spec:
            kept = self._write(spec)
        owner = claim.owner
        return f"{kept.releasing}{len(owner)}\r\n{owner}\r\n{kept.words.leaving}".encode()

    def handing_over(self, claim: Claim, channel: str) -> bytes:
        """The same, where most likely somebody waits: see release.lua for what the channel is good for."""
        spec = claim.spec
        kept = self._written.get(id(spec))
        if kept is None or kept.spec is not spec:
            kept = self._write(spec)
        owner = claim.owner
        ends = f"{kept.words.leaving}$1\r\n0\r\n${len(channel)}\r\n{channel}\r\n"
        return f"{kept.words.handing}{kept.key}${len(owner)}\r\n{owner}\r\n{ends}".encode()

    def take_words(self, claim: Claim, wake: str) -> tuple[str, str]:
        """The key of one take of many, and what is said of it."""
        kept = self.of(claim.spec)
        owner, actor, words = claim.owner, claim.actor, kept.words
        size = len(owner) + len(wake) + len(actor) + words.size
        return kept.key, f"${size}\r\n{owner} {wake}{words.before}{actor}{words.detail}"

    def release_words(self, claim: Claim) -> tuple[str, str]:
        """The key of one release of many, and what is said of it."""
        kept = self.of(claim.spec)
        return kept.key, f"${len(claim.owner)}\r\n{claim.owner}\r\n{kept.words.leaving}"

    def of(self, spec: LockSpec) -> Written:
        """What is the same in every call for this spec."""
        kept = self._written.get(id(spec))
        return kept if kept is not None and kept.spec is spec else self._write(spec)

    def take(self, claim: Claim, queue: bool, wake: str) -> Order:
        return self.take_all((claim,), queue, wake)._replace(read=one_taken)

    def take_all(self, claims: Sequence[Claim], queue: bool, wake: str) -> Order:
        keys = [self.line(claim.spec.name) for claim in claims]
        words: list[bytes | str | int] = [len(claims), *keys]
        for claim in claims:
            before, after = self._detail(claim.spec)
            words += [f"{claim.owner} {wake}{before}{claim.actor}{after}", _left(claim.spec)]
        if not queue or self.index is not None:
            words.append(0 if not queue else self.index or "")
        return Order(self._take, len(words), bulks(*words), taken, keys[0])

    def _detail(self, spec: LockSpec) -> tuple[str, str]:
        """What is said of a claim, before its actor and after it."""
        before = (
            f" {_left(spec)} {spec.capacity} {spec.weight} {spec.fair + 2 * spec.robust} {us(spec.ttl)} "
            f"{us(patience(spec))} {us(spec.lock_delay)} {self._pid} {spec.mode} "
        )
        return before, f" {self._host}"

    def _write(self, spec: LockSpec) -> Written:
        words = self._words.get(spec.option_set)
        if words is None:
            words = self._write_options(spec)
            if len(self._words) >= KEPT_COUNT:
                self._words.clear()
            self._words[spec.option_set] = words
        line = self._lines + spec.name
        size = len(line) if line.isascii() else len(line.encode())
        kept = Written(spec, f"${size}\r\n{line}\r\n", words)
        if len(self._written) >= KEPT_COUNT:
            self._written.clear()
        self._written[id(spec)] = kept
        return kept

    def _write_options(self, spec: LockSpec) -> SpecWords:
        before, after = self._detail(spec)
        left = bulks(_left(spec)).decode()
        ending = left if self.index is None else left + bulks(self.index).decode()
        take, one = self._take.call(4 if self.index is None else 5), bulks(1)
        calls = (take + one).decode(), (self._release.call(4) + one).decode(), (self._release.call(6) + one).decode()
        return SpecWords(before, after, left, ending, calls, us(spec.ttl))

    def release(self, claim: Claim, linger: float) -> Order:
        key = self.line(claim.spec.name)
        words: list[bytes | str | int] = [1, key, claim.owner, us(claim.spec.ttl)]
        if linger:
            words.append(us(linger))
        return Order(self._release, len(words), bulks(*words), bool, key, released_now_or_before)

    def renew(self, claims: Sequence[Claim]) -> Order:
        keys = [self.line(claim.spec.name) for claim in claims]
        words = [word for claim in claims for word in (claim.owner, us(claim.spec.ttl), f"{claim.token:016d}")]
        return Order(self._renew, 1 + 4 * len(claims), bulks(len(claims), *keys, *words), said, keys[0])

    def evict(self, request: Evict) -> Order:
        key = self.line(request.name)
        return Order(self._evict, 3, bulks(1, key, request.token), bool, key)

    def recover(self, claim: Claim) -> Order:
        key = self.line(claim.spec.name)
        return Order(self._recover, 4, bulks(1, key, claim.owner, claim.token), bool, key)

    def allow(self, request: Allow) -> Order:
        key = self._rates + request.name.encode()
        words = bulks(1, key, us(request.interval), request.burst, request.cost, us(request.reserve))
        return Order(program("allow"), 6, words, allowed, key)

    def survey(self, keys: Sequence[bytes]) -> Order:
        def read(reply: list[Any]) -> list[LockView]:
            now, *views = reply
            return [view_of(keys[view[0] - 1].decode().removeprefix(self._lines), view, now) for view in views]

        return Order(program("survey"), 1 + len(keys), bulks(len(keys), *keys), read, keys[0])

    def pattern(self, prefix: str) -> bytes:
        """What SCAN is to match for names with this prefix."""
        plain = self.line(prefix)
        for special in (b"\\", b"*", b"?", b"[", b"]"):
            plain = plain.replace(special, b"\\" + special)
        return plain + b"*"


def _left(spec: LockSpec) -> int:
    """For how long the server keeps what it knows, in ms: a day longer than the hold, and the delay after it.

    Of a robust claim for a year: what it leaves unrecovered is not to be forgotten meanwhile.
    """
    return (YEAR_MS if spec.robust else DAY_MS) + us(spec.ttl + spec.lock_delay) // 1000


def write(codec: Codec, request: Any, wake: str) -> Order:
    """Any verb that is one call."""
    match request:
        case Take(claims=[claim], queue=queue):
            return codec.take(claim, queue, wake)
        case Take(claims=claims, queue=queue):
            return codec.take_all(claims, queue, wake)
        case Release(claim=claim, linger=linger):
            return codec.release(claim, linger)
        case Renew(claims=claims):
            return codec.renew(claims)
        case Evict():
            return codec.evict(request)
        case Recover(claim=claim):
            return codec.recover(claim)
        case Allow():
            return codec.allow(request)
    raise TypeError(f"not a verb: {request!r}")
