"""Random requests to a Redis server, as holdfast writes them and as it does not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from holdfast.backends.queue_backend import Allow, Evict
from holdfast.backends.record_requests import ListRecords, SwapRecord, Touch
from holdfast.backends.redis.codec import NOT_YET_HEARING, NOWHERE, Codec, Order
from holdfast.backends.redis.programs import program
from holdfast.backends.redis.record_codec import RecordCodec
from holdfast.backends.redis.resp import bulk, command
from holdfast.backends.redlock.fanout import EVERYBODY, Fanout
from holdfast.backends.redlock.programs import HOT, frame, frame_with_source
from holdfast.backends.redlock.programs import program as redlock_program
from holdfast.model import Claim, LockSpec
from tests.likeness.redis_sides import Side, Step, Tree

CLIENTS = 4
ASKER, PUSHED, LISTENER, STRANGER = range(CLIENTS)
"""One asks in version 2, one in version 3 and is pushed to, one only listens, one says anything."""
SPACE = "hf"
CHANNELS = {PUSHED: f"{SPACE}/wake/p", LISTENER: f"{SPACE}/wake/l"}
LISTENS = "aaaaaaaa"
"""Where those who wait for redlock's names would be told."""
OWNERS = [f"owner{number}" for number in range(6)]
RECORD_KEYS = ["a", "a b", "b/é", "c"]
LONG_S, OVER_S = 1000.0, 1e-6
"""A ttl that no play outlives, and one that is over before the next request."""
WORDS = [
    b"k", b"z", b"hf/x", b"1", b"0", b"-1", b"2.5", b"", b"v", b"PX", b"NX", b"XX", b"GET", b"KEEPTTL", b"100000",
    b"GT", b"CH", b"MATCH", b"*", b"h?/*", b"COUNT", b"LOAD", b"EXISTS", b"FLUSH", b"SETNAME", b"GETNAME", b"a b", b"3",
    b"AUTH", b"WHOAMI",
]  # fmt: skip
NAMES = [
    b"SET", b"GET", b"DEL", b"EXISTS", b"TYPE", b"PTTL", b"PEXPIRE", b"ZADD", b"ZRANGE", b"ZSCORE", b"ZREM", b"ECHO",
    b"PING", b"SELECT", b"AUTH", b"NONSENSE", b"UNLINK", b"ZREMRANGEBYSCORE", b"CLIENT", b"DBSIZE", b"EVALSHA",
    b"WAIT",
]  # fmt: skip


def opening() -> Iterator[Step]:
    """What the clients say first."""
    yield plain(PUSHED, command("HELLO", 3) + command("SUBSCRIBE", CHANNELS[PUSHED]), ("", ""))
    yield plain(LISTENER, command("SUBSCRIBE", CHANNELS[LISTENER]))


def closing() -> Iterator[Step]:
    """After this nothing more may come: what a server says unasked, and the other does not, stands before it."""
    for client in range(CLIENTS):
        yield plain(client, command("PING", "end"))


def plain(client: int, data: bytes, how: tuple[str, ...] = ("",)) -> Step:
    return Step(client, repr(data[:90]), lambda side: data, how)


class Steps:
    """Endless, from a seed."""

    def __init__(self, chance: Random, ballots: list[int]) -> None:
        self._chance = chance
        self._ballots = ballots
        self._codec = Codec(SPACE, "host", 7)
        self._records = RecordCodec(SPACE, self._codec.chosen, clustered=False)

    def __iter__(self) -> Iterator[Step]:
        kinds = [
            self._take,
            self._release,
            self._renew,
            self._other,
            self._redlock,
            self._common,
            self._nonsense,
            self._swap,
            self._record,
        ]
        while True:
            (kind,) = self._chance.choices(kinds, (6, 4, 2, 3, 5, 3, 3, 6, 5))
            yield kind()

    def _asker(self) -> int:
        return self._chance.choice((ASKER, PUSHED))

    # Of redis://

    def _claim(self) -> Claim:
        chance = self._chance
        name = chance.choice("abcd")
        capacity = (3 if name == "c" else 1) if chance.random() < 0.95 else 2
        weight = chance.randint(1, capacity)
        ttl = LONG_S if chance.random() < 0.85 else OVER_S
        delay = 500.0 if chance.random() < 0.1 else 0.0
        fair = name not in "cd" or chance.random() < 0.6
        mode = "lock" if capacity == 1 else "semaphore"
        margin, robust = 0.0 if ttl < 1 else None, chance.random() < 0.3
        spec = LockSpec(name, ttl, weight, capacity, mode, fair, lock_delay=delay, margin=margin, robust=robust)
        return Claim(spec, chance.choice(OWNERS), "actor")

    def _call(self, what: str, write: Order, learn: object = None, how: str = "") -> Step:
        call = write.program.call if self._chance.random() < 0.5 else write.program.call_with_source
        return plain(self._asker(), call(write.size) + write.words, (how,))

    def _take(self) -> Step:
        chance = self._chance
        wake = chance.choice((*CHANNELS.values(), *CHANNELS.values(), NOWHERE, NOT_YET_HEARING, f"{SPACE}/wake/gone"))
        many = chance.random()
        if many < 0.7:
            claim = self._claim()
            order = self._codec.take(claim, chance.random() < 0.8, wake)
            step = self._call("take", order)

            def learn(side: Side, tree: Tree) -> None:
                if tree[0] == "$":
                    side.tokens[claim.owner] = int(tree[1][:16])
                elif tree[0] == ":" and tree[1] > 0:
                    side.tokens[claim.owner] = tree[1]

            return Step(step.client, step.what, step.frame, step.how, learn)
        claims = list({claim.spec.name: claim for claim in (self._claim() for _ in range(3))}.values())
        if many < 0.85:
            return self._call("take", self._codec.take_all(claims, chance.random() < 0.7, wake))
        words = [b"%d" % len(claims), *(self._codec.line(claim.spec.name) for claim in claims)]
        for claim in claims:
            before, after = self._codec._detail(claim.spec)
            words += [f"{claim.owner} {wake}{before}{claim.actor}{after}".encode(), b"86400000"]
        return self._many("takes", [*words, (self._codec.index or "").encode()] if chance.random() < 0.5 else words)

    def _many(self, verb: str, words: list[bytes]) -> Step:
        data = program(verb).call_with_source(len(words)) + b"".join(map(bulk, words))
        return plain(self._asker(), data)

    def _release(self) -> Step:
        claim = self._claim()
        if self._chance.random() < 0.2:
            claims = list({claim.spec.name: claim for claim in (self._claim() for _ in range(3))}.values())
            words = [b"%d" % len(claims), *(self._codec.line(claim.spec.name) for claim in claims)]
            for claim in claims:
                words += [claim.owner.encode(), b"%d" % int(LONG_S * 1e6)]
            return self._many("releases", words)
        if self._chance.random() < 0.4:
            return plain(PUSHED, self._codec.handing_over(claim, CHANNELS[PUSHED]))
        return self._call("release", self._codec.release(claim, self._chance.choice((0.0, 0.0, 300.0))))

    def _renew(self) -> Step:
        claims = list({claim.spec.name: claim for claim in (self._claim() for _ in range(2))}.values())
        source = self._chance.random() < 0.5

        def write(side: Side) -> bytes:
            for claim in claims:
                claim.token = side.tokens.get(claim.owner, 1)
            order = self._codec.renew(claims)
            return (order.program.call_with_source if source else order.program.call)(order.size) + order.words

        return Step(self._asker(), f"renew {[(claim.spec.name, claim.owner) for claim in claims]}", write)

    def _other(self) -> Step:
        chance = self._chance
        name = chance.choice("abcd")
        kind = chance.randrange(5)
        owner = chance.choice(OWNERS)
        if kind == 4:

            def recover(side: Side) -> bytes:
                order = self._codec.recover(Claim(LockSpec(name), owner, "actor", side.tokens.get(owner, 1)))
                return order.program.call_with_source(order.size) + order.words

            return Step(self._asker(), f"recover {name} {owner}", recover)
        if kind == 0:

            def write(side: Side) -> bytes:
                order = self._codec.evict(Evict(name, side.tokens.get(owner, 1)))
                return order.program.call_with_source(order.size) + order.words

            return Step(self._asker(), f"evict {name} {owner}", write)
        if kind == 1:
            request = Allow(name, LONG_S, chance.choice((1, 2, 3)), 1, chance.choice((0.0, 1500.0)))
            return self._call("allow", self._codec.allow(request))
        if kind == 2:
            return plain(self._asker(), command("ZRANGE", f"{SPACE}/contended", 0, -1))
        return self._call("survey", self._codec.survey([self._codec.line(each) for each in "abcd"]))

    # Records

    def _swap(self) -> Step:
        chance = self._chance
        key, owner = chance.choice(RECORD_KEYS), chance.choice(OWNERS[:2])
        data = None if chance.random() < 0.25 else bytes(chance.randrange(256) for _ in range(3))
        ttl = chance.choice((0.0, OVER_S, LONG_S))
        stale, source = chance.random() < 0.2, chance.random() < 0.5

        def write(side: Side) -> bytes:
            expected = 17 if stale else side.versions.get(key, 0)
            order = self._records.swap(SwapRecord(key, expected, data, owner, ttl, LONG_S))
            return (order.program.call_with_source if source else order.program.call)(order.size) + order.words

        def learn(side: Side, tree: Tree) -> None:
            if tree[0] == "*":
                _, *more = tree[1]
                found: Tree = more[0] if more else (":", 0)
                while found[0] == "*":  # what is there: its version comes first
                    found = found[1][0]
                side.versions[key] = found[1] if found[0] == ":" else 0

        return Step(self._asker(), f"swap {key} {data!r} {owner}", write, ("",), learn)

    def _record(self) -> Step:
        chance = self._chance
        keys = chance.sample(RECORD_KEYS, chance.randint(1, 3))
        kind = chance.randrange(7)
        if kind == 0:
            return self._call("read", self._records.read(keys))
        if kind == 1:
            touches = [Touch(key, chance.choice(OWNERS[:2]), LONG_S) for key in keys]
            return self._call("touch", self._records.touch(touches))
        if kind == 2:
            request = ListRecords(chance.choice(("", "a", "b/")), "", chance.choice((1, 2, 100)))
            return self._call("list", self._records.list(self._records.buckets[0], request, chance.choice(("", "a"))))
        if kind == 3:
            spoilt = command("ZADD", f"{SPACE}/records", 0, "gone")
            return plain(self._asker(), spoilt if chance.random() < 0.8 else command("SET", f"{SPACE}/record/c", "x"))
        looks = (command("ZRANGE", f"{SPACE}/records", 0, -1), command("TYPE", f"{SPACE}/record/{keys[0]}"))
        return plain(self._asker(), looks[kind == 4])

    # Of redlock://

    def _redlock(self) -> Step:
        chance = self._chance
        marks, name = f"{SPACE}/marks", chance.choice("xy")
        hold, trace = f"{SPACE}/hold/{name}", f"{SPACE}/trace/{name}"
        ballot, owner = f"{chance.choice(self._ballots):020d}", chance.choice(OWNERS[:3])
        delay = chance.choice(("0000000000", "0000500000"))
        text = f'{ballot}{delay}{owner} detail/é "x"'
        span = str(1_000_000 + int(delay))
        verb = chance.choice(
            ("take", "take", "take", "extend", "release", "evict", "survey", "leave", "hello", "become", "load")
        )
        how = ""
        keys: tuple[str, ...]
        args: tuple[str, ...]
        if verb == "load":
            loaded = redlock_program(chance.choice(HOT)).source
            return plain(self._asker(), b"*3\r\n" + bulk(b"SCRIPT") + bulk(b"LOAD") + bulk(loaded))
        if verb == "take":
            luck = chance.random()
            place = str(self._ballots[1]) if luck < 0.25 else ""
            since = (f"{self._ballots[0]:016d}{place}",) if luck < 0.5 else ()
            keys, args = (hold, marks), (span, LISTENS if luck < 0.75 else "", text, *since)
        elif verb == "extend":
            keys, args = (marks, hold, trace), ("86400000", span, text)
        elif verb == "release":
            keys = (hold, marks, trace) if chance.random() < 0.5 else (hold, marks)
            luck = chance.random()
            args = (text, "400000") if luck < 0.3 else (text,)
            if luck > 0.7:
                args = (text, "0", f'{self._ballots[0]:016d}{LISTENS}{hold}\n{delay}{owner} detail/é "x"')
        elif verb == "evict":
            keys, args = (hold, marks, trace), (ballot, "86400000")
        elif verb == "survey":
            keys, args, how = (marks,), ("0", f"{SPACE}/hold/*", "1000"), "json"
        elif verb == "leave":
            waiter = f'{self._ballots[0]:016d}{LISTENS}{hold}\n{delay}{owner} detail/é "x"'
            keys, args = (hold, marks), (waiter, owner)
        elif verb == "hello":
            nonce = f"{chance.getrandbits(64):016x}".replace("0", "a")
            keys, args = (marks,), (f"n{nonce[1:]}", f"{chance.randint(1, 99):016d}", "0")
        else:
            return self._become(marks, hold, trace, ballot, chance.choice((owner, "")))
        request = Fanout(verb, keys, args, EVERYBODY)
        data = (frame if chance.random() < 0.5 else frame_with_source)(request)
        step = plain(self._asker(), data, (how,))
        if verb != "hello":
            return step

        def learn(side: Side, tree: Tree) -> None:
            side.memory = tree[1][16:] if tree[0] == "$" else side.memory

        return Step(step.client, f"hello {args}", step.frame, step.how, learn)

    def _become(self, marks: str, hold: str, trace: str, ballot: str, owner: str) -> Step:
        floor = f"{self._ballots[0]:020d}"

        def write(side: Side) -> bytes:
            memory = side.memory.decode() or "S" + "0" * 72
            run = memory[37:77] if memory[0] == "+" else memory[1:41]
            args = (memory, f"+{floor}{9:016d}{run}{'f' * 16}", "86400000", ballot, owner)
            return frame_with_source(Fanout("become", (marks, hold, trace), args, EVERYBODY))

        def learn(side: Side, tree: Tree) -> None:
            if tree == (":", 1):
                memory = side.memory.decode()
                run = memory[37:77] if memory[0] == "+" else memory[1:41]
                side.memory = f"+{floor}{9:016d}{run}{'f' * 16}".encode()

        return Step(self._asker(), f"become {ballot} {owner}", write, ("",), learn)

    # Plain ones

    def _common(self) -> Step:
        chance = self._chance
        client = self._asker()
        setting = chance.choice(("append*", "maxmemory*", "requirepass"))
        key = chance.choice(("line/a", "contended", "rate/a"))
        founding = command("SET", f"{SPACE}/cluster", chance.randrange(9), "NX") + command("GET", f"{SPACE}/cluster")
        return chance.choice(
            (
                plain(client, command("CONFIG", "GET", setting), ("sorted",)),
                plain(client, command("SCAN", 0, "MATCH", self._codec.pattern("a"), "COUNT", 1000), ("sorted",)),
                plain(client, command("INFO"), ("info",)),
                plain(client, command("SCRIPT", "FLUSH")),
                plain(client, founding, ("", "")),
                plain(client, command("PUBLISH", chance.choice(list(CHANNELS.values())), "owner0 5")),
                plain(client, command("WAIT", chance.choice((0, 1)), 10)),
                plain(client, command("ACL", "WHOAMI")),
                plain(client, command("PTTL", f"{SPACE}/{key}"), ("span",)),
                plain(client, command("CONFIG", "SET", "maxmemory", chance.choice((0, 0, 1)))),
                plain(client, command("CLUSTER", "SLOTS")),
                plain(client, command("HELLO", chance.choice((2, 4, "x", 3)) if client == ASKER else 3)),
                plain(client, command("WAITAOF", 1, 0, 1)),
                plain(client, command("SET", self._codec.line(chance.choice("ab")), "not a line")),
                plain(LISTENER, chance.choice((command("PING"), command("PING", "x"), command("GET", "k")))),
            )
        )

    def _nonsense(self) -> Step:
        chance = self._chance
        if chance.random() < 0.03:
            bad = (b"*1\r\nGET\r\n", b"*x\r\n", b"*1\r\n$-5\r\n", b"*-1\r\n*1\r\n$x\r\n", b'PING "a\r\n', b"QUIT\r\n")
            return plain(STRANGER, chance.choice(bad))
        if chance.random() < 0.05:
            return plain(STRANGER, chance.choice((b"PING\r\n", b"\r\nECHO a\r\n", b"*0\r\nPING\n")))
        words = [chance.choice(NAMES), *(chance.choice(WORDS) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 5))))]
        if words[0] == b"WAIT" and len(words) == 3:
            words[2] = b"1"
        return plain(STRANGER, command(*words))
