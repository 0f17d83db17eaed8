"""Random rounds of our statements, on several sessions of MariaDB and of its model at once."""

from __future__ import annotations

import socket
from random import Random

from holdfast.backends.mysql import capabilities, codec, short_cuts
from holdfast.backends.mysql.packets import QueryReply, RowsReader
from holdfast.backends.mysql.programs import schema, statements
from holdfast.backends.mysql.session import codec as session_codec
from holdfast.backends.queue_backend import Survey
from holdfast_sim.servers.mysql.packets import framed
from holdfast_sim.servers.mysql.server import MariaDBServer
from tests.likeness.mysql_play import ANSWER_S, Difference, Pair
from tests.likeness.play import Recorder
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
from tests.mysql.server import Server

STATEMENTS = (*short_cuts.PREPARED, *session_codec.PREPARED)
TIDIES_SESSIONS, TIDIES_NONE = 0.0, 0.9


class Loaded(Random):
    """Chance that the play decides where the procedure of housekeeping asks for it."""

    tidies = TIDIES_NONE

    def random(self) -> float:
        return self.tidies


class Play:
    """Both servers from the same beginning, and a few sessions at each."""

    def __init__(self, server: Server, database: str) -> None:
        self.dice = Random(0)
        self.now = START_US
        self.chance = Loaded()
        self.host = VirtualTime(self.now / 1_000_000, self.chance)
        self.model = MariaDBServer(self.host, database, {"root": "", "bob": "secret"})
        self.model.version = server.execute("SELECT VERSION()")[0][0]
        self.model.settings["innodb_flush_log_at_trx_commit"] = "0"  # as `tests/mysql/server.py` has it
        server.execute(f"DROP DATABASE IF EXISTS {database}")
        server.execute(f"CREATE DATABASE {database}")
        self._port = server.port
        self._database = database.encode()

    def pair(self) -> Pair:
        return Pair(self._port, self.model, self.dice)

    def refused(self) -> bytes:
        """The first words to a client that is not let in."""
        with socket.create_connection(("127.0.0.1", self._port), ANSWER_S) as real:
            said = real.recv(4096)
        output = Recorder()
        self.model.accept(output)
        assert output.ended
        assert bytes(output.data) == said
        return said

    def opened(self) -> Pair:
        pair = self.pair()
        pair.log_in(b"root", b"", self._database)
        self.greet(pair)
        for text in STATEMENTS:
            pair.prepare(text)
        return pair

    def greet(self, pair: Pair) -> None:
        pair.say(b"\x03" + capabilities.FACTS)
        pair.say(b"\x03SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        for text in (b"SELECT CONNECTION_ID()", capabilities.SHOW_LIFE, capabilities.REPLICAS):
            pair.say(b"\x03" + text)
        if pair.say(b"\x03" + capabilities.META)[0][1][:1] == b"\xff":
            for text in (capabilities.CREATING, *statements(schema()), capabilities.CREATED, capabilities.META):
                pair.say(b"\x03" + text)

    def step(self, us: int) -> None:
        self.now += us
        self.host.set_calendar(self.now / 1_000_000)

    def ask(self, pair: Pair, order: codec.Order) -> object:
        """An order, with those that its replies ask for."""
        while True:
            if order.values:
                packets = pair.execute(order.text, order.values, self.now)
            else:
                packets = pair.say(b"\x03" + order.text, self.now)
            reply = reply_of(packets)
            if reply.error is not None:
                if order.instead is None or (other := order.instead(reply.error)) is None:
                    return reply.error
                order = other
                continue
            value = order.read(reply)
            if not isinstance(value, codec.Order):
                return value
            order = value


def reply_of(packets: list[tuple[int, bytes]]) -> QueryReply:
    [reply] = RowsReader().feed(b"".join(framed([packet], number) for number, packet in packets))
    return reply


class Round:
    """One seed: claims on a few names, and what might be asked about them, in any order."""

    def __init__(self, play: Play, sessions: list[Pair], seed: int) -> None:
        self.play, self.sessions = play, sessions
        self.dice = play.dice = Random(seed)
        self.codecs = [codec.Codec(f"ns{seed % 7}", "host", number) for number in range(SESSIONS)]
        self.locks = [session_codec.SessionCodec(f"ns{seed % 7}", "host", number) for number in range(SESSIONS)]
        self.claims = new_claims(self.dice)

    def run(self) -> None:
        for _ in range(STEPS):
            if not any(pair.waiting for pair in self.sessions):
                self.play.step(self.dice.choice(STEPS_US))
            free = [number for number, pair in enumerate(self.sessions) if pair.waiting is None]
            number = self.dice.choice(free)
            self.dice.choice([self.table, self.table, self.session_locks, self.sessions_end])(number)
            self.settle()
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
        dice = self.dice
        request = table_request(dice, self.claims)
        pair, wake = self.sessions[number], dice.choice([0, 7])
        if request is None:
            order = self.codecs[number].tidy(dice.choice([2, 200])) if dice.random() < 0.5 else hear()
            self.play.chance.tidies = dice.choice([TIDIES_NONE, TIDIES_SESSIONS])
            seed = 0 if self.play.chance.tidies == TIDIES_SESSIONS else 500_000_000
            pair.socket.sendall(framed([b"\x03SET rand_seed1 = %d, rand_seed2 = 0" % seed], 0))
            pair._real(lambda packets: bool(packets))
            self.play.ask(pair, order)
            return
        reply = self.play.ask(pair, self.codecs[number].write(request, wake))
        note_tokens(request, reply)
        self.play.ask(pair, self.codecs[number].write(Survey("")))

    def session_locks(self, number: int) -> None:
        claim, dice, locks = self.dice.choice(self.claims), self.dice, self.locks[number]
        pair, seen = self.sessions[number], dice.random() < 0.3
        lone = sum(pair.waiting is None for pair in self.sessions) == 1
        match dice.randrange(9):
            case 0 | 1 | 2:
                self.play.ask(pair, locks.take(claim, dice.random() < 0.5, seen))
            case 3 if not lone:
                pair.start(b"\x03" + locks.wait(claim).text, self.play.now)
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
            self.play.ask(pair, locks.write(Survey("")))

    def sessions_end(self, number: int) -> None:
        """Now and then somebody gives up, is killed, or leaves."""
        pair = self.sessions[number]
        other = self.dice.randrange(SESSIONS)
        match self.dice.randrange(8):
            case 0 if other != number and self.sessions[other].waiting is not None:
                self.give_up(other)
            case 1 if other != number:
                pair.say(b"\x03KILL CONNECTION %d" % self.sessions[other].number)
                assert self.sessions[other].ended()
                self.sessions[other].socket.close()
                self.sessions[other] = self.play.opened()
            case 2 if other != number:
                pair.say(b"\x03KILL QUERY %d" % self.sessions[other].number)
            case 3:
                pair.say(b"\x03KILL QUERY 999999")
                pair.say(b"\x03SELECT IS_USED_LOCK('holdfast-session-%d')" % self.sessions[other].number)
            case 4:
                pair.say(b"\x0e")
            case _:
                pair.say(b"\x03DO 0")

    def give_up(self, waiting: int) -> None:
        """As a client does that stops waiting."""
        other = next(pair for pair in self.sessions if pair.waiting is None)
        other.say(b"\x03KILL QUERY %d" % self.sessions[waiting].number)
        assert self.sessions[waiting].settle()


def hear() -> codec.Order:
    return codec.Order(b"CALL holdfast_hear(7,0,0)", codec.listener_hear(7, 0).read)


def play_rounds(server: Server, seeds: range) -> None:
    play = Play(server, "likeness")
    sessions = [play.opened() for _ in range(SESSIONS)]
    try:
        for seed in seeds:
            try:
                Round(play, sessions, seed).run()
            except Difference as error:
                error.add_note(f"in round {seed} of {seeds}: each goes on where the one before ended")
                raise
    finally:
        for pair in sessions:
            pair.socket.close()
