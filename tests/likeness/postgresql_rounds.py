"""Random rounds of our statements, on several sessions of PostgreSQL and of its model at once."""

from __future__ import annotations

from random import Random

from holdfast.backends.postgresql.codec import Codec, Order
from holdfast.backends.postgresql.programs import SQL
from holdfast.backends.postgresql.results import rows_of
from holdfast.backends.postgresql.session.codec import SessionCodec
from holdfast.backends.queue_backend import Release, Survey
from holdfast.backends.relational.batch import LeaveAll
from holdfast.backends.relational.error_mapping import Refused
from holdfast_sim.servers.postgresql.queries import CREATING
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from tests.likeness.postgresql_play import Difference, Pair
from tests.likeness.relational_rounds import (
    SESSIONS,
    START_US,
    STEPS,
    STEPS_US,
    new_claims,
    note_tokens,
    table_request,
)
from tests.likeness.virtual import VirtualTime
from tests.postgresql.server import Server

OUR_CLOCK = """CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
               $$ SELECT current_setting('holdfast.now')::bigint $$"""
BOX = b"box"


class Play:
    """Both servers from the same beginning."""

    def __init__(self, server: Server, database: str) -> None:
        self.dice = Random(0)
        self.now = START_US
        self.host = VirtualTime(self.now / 1_000_000)
        self.model = PostgreSQLServer(self.host, database)
        self.model.version_number = int(server.execute("SHOW server_version_num")[0][0])
        self.model.settings["fsync"] = "off"  # as `tests/postgresql/server.py` has it
        server.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {database}")
        self._server = server
        self._url = server.url(database)
        self._database = database

    def opened(self) -> Pair:
        pair = Pair(self._url, self.model, self.dice)
        pair.say(SQL["facts"].text)
        pair.say(b"SET statement_timeout = 5000")
        if self.model.database.meta is None:
            pair.say(CREATING)
            [[cluster]] = self._server.execute(
                "SELECT value FROM holdfast_meta WHERE key = 'cluster'", database=self._database
            )
            self.model.database.meta = {**(self.model.database.meta or {}), "cluster": cluster}
            self._server.execute(OUR_CLOCK, database=self._database)
        pair.say(SQL["meta"].text)
        pair.say(SQL["session_bounds"].text)
        return pair

    def wait_for_the_end(self, pid: int) -> None:
        """A process needs a moment to end after its client has."""
        while self._server.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", pid):
            pass

    def step(self, us: int) -> None:
        self.now += us
        self.host.set_calendar(self.now / 1_000_000)

    def ask(self, pair: Pair, order: Order) -> object:
        pair.ask(order.statement, list(order.values), self.now, self.dice.random() < 0.7)
        try:
            return order.read(rows_of(pair.last))
        except Refused as error:
            return error


class Round:
    """One seed: claims on a few names, and what might be asked about them, in any order."""

    def __init__(self, play: Play, sessions: list[Pair], seed: int) -> None:
        self.play, self.sessions = play, sessions
        self.dice = play.dice = Random(seed)
        self.codecs = [Codec(f"ns{seed % 7}", "host", number) for number in range(SESSIONS)]
        self.locks = [SessionCodec(f"ns{seed % 7}", "host", number) for number in range(SESSIONS)]
        self.claims = new_claims(self.dice)

    def run(self) -> None:
        for _ in range(STEPS):
            if not any(pair.waiting for pair in self.sessions):
                self.play.step(self.dice.choice(STEPS_US))
            number = self.dice.choice([number for number, pair in enumerate(self.sessions) if not pair.waiting])
            self.dice.choice([self.table, self.table, self.session_locks, self.sessions_end])(number)
            self.settle()
            if self.sessions[0].waiting is None:
                self.sessions[0].heard()
        for waiting in [number for number, pair in enumerate(self.sessions) if pair.waiting is not None]:
            self.give_up(waiting)
        for number in range(SESSIONS):
            for claim in self.claims:
                while self.play.ask(self.sessions[number], self.locks[number].unlock(claim.spec.name)) is True:
                    pass

    def settle(self) -> None:
        for pair in self.sessions:
            if pair.waiting is not None:
                pair.settle()

    def table(self, number: int) -> None:
        dice, pair, codec = self.dice, self.sessions[number], self.codecs[number]
        request, wake = table_request(dice, self.claims), dice.choice([BOX, BOX, BOX, b"", b"elsewhere"])
        if isinstance(request, Release | LeaveAll):
            wake = dice.choice([BOX, b"elsewhere", b"elsewhere"])  # by those who wait themselves, or by others
        if request is None:
            self.play.ask(pair, codec.tidy(1_000_000))
            return
        note_tokens(request, self.play.ask(pair, codec.write(request, wake, dice.random() < 0.5)))
        self.play.ask(pair, codec.write(Survey("", contended=dice.random() < 0.5)))

    def session_locks(self, number: int) -> None:
        claim, dice, locks, pair = self.dice.choice(self.claims), self.dice, self.locks[number], self.sessions[number]
        lone = sum(pair.waiting is None for pair in self.sessions) == 1
        match dice.randrange(9):
            case 0 | 1 | 2:
                self.play.ask(pair, locks.take(claim, dice.random() < 0.5, dice.random() < 0.3))
            case 3 if not lone:
                order = locks.wait(claim)
                pair.start(order.statement, list(order.values), self.play.now)
                pair.settle()
            case 4:
                self.play.ask(pair, locks.queue(claim))
            case 5:
                self.play.ask(pair, locks.leave(claim.owner))
            case 6:
                self.play.ask(pair, locks.alive())
            case _:
                self.play.ask(pair, locks.unlock(claim.spec.name))
        self.settle()  # who waits may have got the lock by that: it is to be seen as its holder then
        if pair.waiting is None:
            self.play.ask(pair, locks.write(Survey("", contended=dice.random() < 0.5)))

    def sessions_end(self, number: int) -> None:
        """Now and then somebody gives up, or leaves."""
        pair, other = self.sessions[number], self.dice.randrange(1, SESSIONS)
        match self.dice.randrange(6):
            case 0 if other != number and self.sessions[other].waiting is not None:
                self.give_up(other)
            case 1 if other != number and self.sessions[other].waiting is None:
                self.play.ask(pair, self.locks[number].give_up(self.sessions[other].number))
            case 2:
                self.play.ask(pair, self.locks[number].give_up(1 << 30))
            case 3 if other != number and self.sessions[other].waiting is None:
                self.sessions[other].close()
                self.play.wait_for_the_end(self.sessions[other].number)
                self.sessions[other] = self.play.opened()
            case 4:
                pair.say(b"SELECT 1")
            case _:
                self.play.ask(pair, self.locks[number].alive())

    def give_up(self, waiting: int) -> None:
        """As a client does that stops waiting."""
        number = next(number for number, pair in enumerate(self.sessions) if pair.waiting is None)
        self.play.ask(self.sessions[number], self.locks[number].give_up(self.sessions[waiting].number))
        assert self.sessions[waiting].settle()


def play_rounds(server: Server, seeds: range) -> None:
    play = Play(server, "likeness")
    sessions = [play.opened() for _ in range(SESSIONS)]
    sessions[0].say(b'LISTEN "box"')
    try:
        for seed in seeds:
            try:
                Round(play, sessions, seed).run()
            except Difference as error:
                error.add_note(f"in round {seed} of {seeds}: each goes on where the one before ended")
                raise
    finally:
        for pair in sessions:
            pair.close()
