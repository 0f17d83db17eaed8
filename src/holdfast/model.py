"""The words of holdfast, as data.

A `LockSpec` is what a recipe asks for; with an owner it is a `Claim`, which waits in a line. The engine's yes is a
`Grant`; a grant that the holder has and the keeper renews is a lease. Times are seconds on the driver's clock unless a
name says otherwise; tokens are integers that strictly grow per name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from enum import StrEnum

from .errors import Misconfigured

MAX_NAME_BYTES = 512
SHARED_CAPACITY = 1 << 20
"""The capacity of a read-write lock: a reader takes 1 of it, a writer takes all."""

ATTEMPT_MODE = "attempt"
"""The mode of a claim that is no place in a line but a record (`holdfast.record`): the attempt of a `once`."""

MAX_DURATION_S = 366 * 24 * 3600.0


class State(StrEnum):
    """Where a lease is in its life: HELD → JEOPARDY → HELD | LOST, and RELEASED."""

    HELD = "held"
    JEOPARDY = "jeopardy"
    LOST = "lost"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class LockSpec:
    """What is asked for, without saying by whom: made once per recipe, checked once."""

    name: str
    ttl: float = 30.0
    weight: int = 1
    capacity: int = 1
    mode: str = "lock"
    fair: bool = True
    timeout: float | None = None
    max_hold: float | None = None
    lock_delay: float = 0.0
    hold_at_least: float = 0.0
    margin: float | None = None
    renew: bool = True
    robust: bool = False
    """Whether a hold that does not end cleanly leaves its name unrecovered (`recover=`)."""
    family: str = field(default="", compare=False)
    """What it is counted under: the template of its name; "" where the coordinator is to say."""
    option_set: object = field(default_factory=object, init=False, repr=False, compare=False)
    """The same object in all that are `named` after one: a key to what is prepared for their options."""

    def named(self, name: str) -> LockSpec:
        """The same for another name, which is all that has to be checked."""
        spec = object.__new__(LockSpec)
        for read, write in _SLOTS:
            write(spec, read(self))
        _SET_NAME(spec, check_name(name))
        return spec

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seconds("ttl", self.ttl, self.name, above=0)
        if self.timeout is not None:
            check_seconds("timeout", self.timeout, self.name)
        if self.max_hold is not None:
            check_seconds("max_hold", self.max_hold, self.name, above=0)
        if self.lock_delay != 0:
            check_seconds("lock_delay", self.lock_delay, self.name)
        if self.hold_at_least != 0:
            check_seconds("hold_at_least", self.hold_at_least, self.name)
        if self.margin is not None:
            self._check_margin(self.margin)
        if self.fair is not True or self.renew is not True:
            self._check_switches()
        if self.mode != "lock" or self.weight != 1 or self.capacity != 1:
            self._check_counts()

    def _check_margin(self, margin: float) -> None:
        check_seconds("margin", margin, self.name)
        if margin >= self.ttl / 2:
            raise Misconfigured(
                f"margin of {self.name!r} is {margin:g} s, which leaves too little of a ttl of "
                f"{self.ttl:g} s; keep it below half of the ttl"
            )

    def _check_switches(self) -> None:
        for option, value in (("fair", self.fair), ("renew", self.renew)):
            if not isinstance(value, bool):
                raise Misconfigured(f"{option} of {self.name!r} is True or False, not {value!r}")

    def _check_counts(self) -> None:
        _check_count("permits", self.capacity, self.name)
        _check_count("weight", self.weight, self.name)
        if self.weight > self.capacity:
            raise Misconfigured(
                f"{self.name!r} asks for {self.weight} of {self.capacity}; it could never be granted: "
                "ask for less or raise the capacity"
            )


_SET_NAME = LockSpec.__dict__["name"].__set__
_SLOTS = [(slot.__get__, slot.__set__) for slot in (LockSpec.__dict__[each.name] for each in fields(LockSpec))]


@dataclass(slots=True)  # made for each acquisition, never changed; freezing would cost more than making it
class Claim:
    """A spec with an owner: an entry of the line. The owner id is chosen before the first request.

    `token` is that of its grant, once it has one: a renewal is for that grant and no other.
    """

    spec: LockSpec
    owner: str
    actor: str
    token: int = 0


@dataclass(slots=True, unsafe_hash=True)  # as for Claim
class Predecessor:
    """The last holder of a name, and how its hold ended: released, expired, evicted, session or unknown.

    Where a hold with `recover=` has ended uncleanly, it is that one until somebody has put things right, whoever else
    has held the name since.

    >>> Predecessor(41, "7c1f-2", "expired").clean
    False
    """

    token: int
    owner: str
    ended: str

    @property
    def clean(self) -> bool:
        """Whether it has let go by itself, while it held the name."""
        return self.ended == "released"


@dataclass(slots=True)  # as for Claim
class Grant:
    """The engine's yes: the token, and for how long (`ttl`) from when (`since`, when the request was sent).

    `predecessor`: how the last hold before it ended; None if the engine remembers none.
    """

    token: int
    since: float
    ttl: float
    predecessor: Predecessor | None = None


@dataclass(frozen=True, slots=True)
class Extension:
    """The engine's yes to a renewal: good for `ttl` from `since`, when the request was sent.

    `asked`: the holder was asked to give way.
    """

    since: float
    ttl: float
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    """The engine's "not yet": the claim waits in the line.

    `look_again` is in how many seconds a poll is due even if no push comes; `ahead` is how many claims are before it.
    `since` and `patience` say how long its place is kept, from when the request was sent. `mark` is the last token of
    the name so far: a push with a token that is not above it is old.
    """

    look_again: float
    ahead: int
    since: float
    patience: float
    mark: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A renewal that the engine refused, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim as others see it. `token` is None while it waits.

    `since` is when it began to hold, or to wait, in seconds of the engine's own clock, and `age` how long ago that
    was; `remaining` is for how long the engine keeps it without another request of its owner. A holder that is
    not `live` has ended, and keeps its name locked all the same (`lock_delay`, `hold_at_least`).
    """

    owner: str
    token: int | None
    weight: int
    host: str
    pid: int
    since: float
    remaining: float
    actor: str = ""
    mode: str = "lock"
    live: bool = True
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class LockView:
    """One name with its live claims: who holds, and who waits, in order.

    `unrecovered`: who did not end cleanly and left something to put right (`recover=`), until that was done. Such a
    name is seen even if nobody holds it or waits; then its `capacity` is 0.
    """

    name: str
    capacity: int
    holders: tuple[ClaimView, ...]
    waiters: tuple[ClaimView, ...]
    unrecovered: Predecessor | None = None


@dataclass(frozen=True, slots=True)
class Promises:
    """What an engine can keep, and why not where it cannot.

    Some promises are kept by the engines that list them in `kept`:

    fencing       a token on every grant, strictly growing per name
    linearizable  one order of grants for all clients, whatever fails
    durable       a grant survives a crash of the engine
    shared        read-write locks
    counting      semaphores
    records       small records beside the locks, which `once` needs

    The others are kept by every engine that does not declare in `lacks` that it cannot, with a note that says why:

    ttl           the engine ends a hold that is not renewed when its ttl is over, and keeps it until then
    queue         claims of one coordinator are granted in the order of their arrival
    order         claims of all coordinators are
    evict         one hold can be ended by hand
    linger        `lock_delay` and `hold_at_least`
    limits        rate limiters
    deadlock      claims that wait for each other in a circle are detected
    predecessor   a grant tells how the last hold of its name ended, which `recover=` needs
    """

    kept: frozenset[str]
    notes: dict[str, str] = field(default_factory=dict)
    """Remarks by promise: why it is not kept, or within which limits it is."""
    lacks: frozenset[str] = frozenset()

    LISTED = frozenset({"fencing", "linearizable", "durable", "shared", "counting", "records"})
    USUAL = frozenset({"ttl", "queue", "order", "evict", "linger", "limits", "deadlock", "predecessor"})
    KNOWN = LISTED | USUAL

    def __post_init__(self) -> None:
        for promise in self.lacks:
            if promise not in self.USUAL or not self.notes.get(promise):
                usual = ", ".join(sorted(self.USUAL))
                raise ValueError(f"lacks={promise!r}: name one of {usual}, and say why in notes[{promise!r}]")

    @classmethod
    def known(cls, required: Collection[str]) -> Collection[str]:
        """These promises; raises `Misconfigured` if there is none of that name."""
        for promise in required:
            if promise not in cls.KNOWN:
                known = ", ".join(sorted(cls.KNOWN))
                raise Misconfigured(f"require={promise!r} is not a promise holdfast knows; there are: {known}")
        return required

    def demand(self, required: Collection[str], engine: str) -> None:
        """Raise `Misconfigured` unless every required promise is kept."""
        for promise in self.known(required):
            if promise not in self:
                why = self.notes.get(promise, "the engine does not have it")
                raise Misconfigured(f"{engine} cannot promise {promise!r}: {why}")

    def __contains__(self, promise: object) -> bool:
        return promise in self.kept or (promise in self.USUAL and promise not in self.lacks)


@dataclass(frozen=True, slots=True)
class Sequencer:
    """A grant in portable form: one line of text that anybody can check with one read.

    >>> print(Sequencer("sqlite", "c1", "orders/7", "lock", 42))
    hf1:sqlite:c1:orders%2F7:lock:42
    >>> Sequencer.parse("hf1:sqlite:c1:orders%2F7:lock:42").token
    42
    """

    backend: str
    cluster: str
    name: str
    mode: str
    token: int

    def __str__(self) -> str:
        from urllib.parse import quote  # not at the top: `import holdfast` stays light

        parts = (self.backend, self.cluster, self.name, self.mode)
        return "hf1:" + ":".join(quote(part, safe="") for part in parts) + f":{self.token}"

    @classmethod
    def parse(cls, text: str | Sequencer) -> Sequencer:
        """Read one back; raises `Misconfigured` if it is none. One that has been read stays as it is."""
        if isinstance(text, Sequencer):
            return text
        if not isinstance(text, str):
            raise Misconfigured(f"not a sequencer: {text!r}; take one of a lease, with lease.sequencer()")
        parts = text.strip().split(":")
        if len(parts) != 6 or parts[0] != "hf1" or not (parts[5].isascii() and parts[5].isdigit()):
            raise Misconfigured(f"not a sequencer: {text[:80]!r}; it looks like hf1:backend:cluster:name:mode:token")
        from urllib.parse import unquote

        backend, cluster, name, mode = map(unquote, parts[1:5])
        return cls(backend, cluster, name, mode, int(parts[5]))


def check_name(name: str, what: str = "name") -> str:
    """A name is 1 to 512 bytes of UTF-8 without control characters; `/` makes a hierarchy."""
    if not isinstance(name, str):
        raise Misconfigured(f"a {what} is a str, not {type(name).__name__}: {name!r}")
    if name.isascii() and name.isprintable() and 0 < len(name) <= MAX_NAME_BYTES:
        return name
    if not name:
        raise Misconfigured(f"a {what} is empty; give at least one character")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Misconfigured(f"{what} {name[:40]!r} is not valid Unicode (a lone surrogate); use plain text") from None
    if size > MAX_NAME_BYTES:
        raise Misconfigured(f"{what} {name[:40]!r}… has {size} bytes in UTF-8; at most {MAX_NAME_BYTES} are allowed")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in name):
        raise Misconfigured(f"{what} {name[:80]!r} has a control character; remove it")
    return name


def check_prefix(prefix: str) -> str:
    """What names begin with: any text, also none."""
    if not isinstance(prefix, str):
        raise Misconfigured(f"a prefix is a str, not {type(prefix).__name__}: {prefix!r}")
    try:
        prefix.encode()
    except UnicodeEncodeError:
        raise Misconfigured(f"the prefix {prefix[:40]!r} is not valid Unicode (a lone surrogate)") from None
    return prefix


def check_token(token: int, of: str) -> int:
    """A token is a whole number from 1, as `lease.token` and `survey` give it."""
    if isinstance(token, bool) or not isinstance(token, int) or token < 1:
        raise Misconfigured(f"the token of a hold on {of!r} is a whole number from 1, not {token!r}")
    return token


def check_seconds(what: str, value: float, of: str, above: float | None = None) -> None:
    """A duration: a number from 0 (or above `above`) to a year."""
    if value.__class__ in (float, int) and 0 < value <= MAX_DURATION_S:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise Misconfigured(f"{what} of {of!r} is a number of seconds, not {value!r}")
    if value > MAX_DURATION_S:
        raise Misconfigured(f"{what} of {of!r} is {value:g} s; at most a year ({MAX_DURATION_S:g} s) is allowed")
    if above is not None and value <= above:
        raise Misconfigured(f"{what} of {of!r} is {value:g} s; it must be above {above:g}")
    if value < 0:
        raise Misconfigured(f"{what} of {of!r} is {value:g} s; it cannot be negative")


def _check_count(what: str, value: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Misconfigured(f"{what} of {name!r} is a whole number from 1, not {value!r}")
    if value > SHARED_CAPACITY:
        raise Misconfigured(f"{what} of {name!r} is {value}; at most {SHARED_CAPACITY} is allowed")
