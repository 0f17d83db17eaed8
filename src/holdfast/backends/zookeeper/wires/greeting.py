"""The first words with an ensemble: what it grants, which one it is, and the nodes that must be there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ...._core.flow import Call, Flow
from ....clock import now as clock
from ....errors import BackendUnavailable, HoldfastError, Misconfigured
from ..address import Address
from ..ops import CloseSession, Exists, Failure, Op
from ..paths import CLOCK, RATES
from ..session import Refused, Session, State, Ticket
from ..tree import Tree
from ..trouble import refused
from .dialling import READ_SIZE, Hosts

A_MOMENT = 0.1
"""A server that serves nobody closes the connection. So long after all of them were asked, they are asked again."""
CLOSED = (ConnectionError, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class Greeting:
    """`least` is the shortest session that the servers grant, in seconds."""

    least: float
    cluster: str


def greet(address: Address, tree: Tree, timeout: float) -> Greeting:
    """Ask any server of the ensemble; raises what keeps us from it. While they elect a leader they are asked again."""
    hosts = Hosts(address)
    failure: Exception | None = None
    end = clock() + timeout
    electing = True
    while electing:
        electing = False
        for _ in range(len(hosts)):
            if failure is not None and clock() >= end:
                break
            try:
                return _greet(hosts, tree, min(timeout / min(2, len(hosts)), max(A_MOMENT, end - clock())))
            except Refused as error:
                raise Misconfigured(str(error)) from error
            except HoldfastError:
                raise
            except OSError as error:
                failure = error
                electing |= error.__class__ in CLOSED
                hosts.next()
        electing &= clock() + A_MOMENT < end
        if electing:
            time.sleep(A_MOMENT)
    raise BackendUnavailable(
        f"no server of {address.shown} can be reached: {failure}; see that they run, and that most of them do"
    ) from failure


def _greet(hosts: Hosts, tree: Tree, timeout: float) -> Greeting:
    session = Session(0.001, hosts.address.credentials)
    end = clock() + timeout
    with hosts.dial(timeout) as sock:

        def read() -> None:
            sock.settimeout(max(0.01, end - clock()))
            data = sock.recv(READ_SIZE)
            if not data:
                raise ConnectionError("the server closed the connection")
            sock.sendall(session.receive(data)[2])

        def ask(*ops: Op) -> list[Any]:
            ticket = Ticket(len(ops))
            sock.sendall(session.ask(ops, ticket))
            while not ticket.done:
                read()
            return ticket.answers

        sock.sendall(session.greet())
        while session.state is State.GREETING:
            read()
        standing = [Exists(tree.root), Exists(tree.names + CLOCK), Exists(tree.names + RATES)]
        found = ask(*standing)
        if not all(found):
            _run(tree.found(timeout, CLOCK, RATES), ask)
            found = ask(*standing)
        root = found[0]
        if isinstance(root, Failure):
            raise refused(root, f"looking at {tree.root}")
        least = session.timeout
        sock.sendall(session.ask([CloseSession()], Ticket(1)))  # it would expire soon, too
        return Greeting(least, f"{root.czxid:x}-{root.ctime:x}")


def _run(flow: Flow[None], spec: Any) -> None:
    """The one flow that is run before there is a wire: requests only."""
    answer = None
    try:
        while True:
            op = flow.send(answer)
            assert isinstance(op, Call)
            answer = spec(*op.request.ops)
    except StopIteration:
        return
