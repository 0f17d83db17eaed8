"""Replies of MariaDB, as what the flows expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...model import Claim
from ..queue_backend import Taken
from ..relational.batch import Left, Looked, left_of, looked_of
from ..relational.error_mapping import Refused
from ..relational.replies import Pushes, Released, allowed_of, push_of, pushes_of, taken_of
from .packets import QueryReply

T = TypeVar("T")


def one(reply: QueryReply) -> bytes:
    return reply.rows[0][0] or b""


def yes(reply: QueryReply) -> bool:
    return one(reply) == b"1"


def taken(reply: QueryReply) -> list[Taken]:
    return taken_of(one(reply).split(b","))


def by_name(claims: Sequence[Claim]) -> list[int]:
    """Numbers of claims in the order of their names, as the server sorts them."""
    return sorted(range(len(claims)), key=lambda at: claims[at].spec.name.encode())


def in_turn(told: Sequence[T], order: Sequence[int]) -> list[T]:
    """What is told in this order, in that of the claims."""
    numbered = dict(zip(order, told, strict=True))
    return [numbered[at] for at in range(len(told))]


def renewed(reply: QueryReply, order: Sequence[int]) -> list[str]:
    return in_turn(one(reply).decode().split(","), order)


def looked(reply: QueryReply, order: Sequence[int]) -> Looked:
    found, pushes = looked_of(one(reply))
    return Looked(in_turn(found, order), pushes)


def left(reply: QueryReply, order: Sequence[int]) -> Left:
    held, pushes = left_of(one(reply), b"1")
    return Left(in_turn(held, order), pushes)


def released(reply: QueryReply) -> Released:
    held, *told = one(reply).split()
    return Released(held == b"1", pushes_of(told))


def allowed(reply: QueryReply) -> tuple[bool, float]:
    return allowed_of(one(reply).split(b","))


def pushes(reply: QueryReply | Refused) -> Pushes:
    return [push_of(*(value or b"" for value in row)) for row in reply.rows]
