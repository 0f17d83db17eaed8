"""What is built on tokens, as data: who does it (by hand, holdfast, a peer), and how each is made to do it.

A module in an engine's package lists its ways in `TOOLS`, `ZOMBIES` and `PARTITIONS`; see `registry`. As with
contenders, library code is imported inside the functions: a peer that is missing is a reason in the report.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bench.model import Role, Target

Tool: TypeAlias = Literal["once, first call", "once, replay", "append of an event", "tell and handle a message"]
OPEN: TypeAlias = Callable[[Target], AbstractContextManager[Callable[[], object]]]
BY_HAND = "by hand"
"""The name of the floor, for every tool."""
ORDER: tuple[Tool, ...] = ("once, first call", "once, replay", "append of an event", "tell and handle a message")


@dataclass(frozen=True, slots=True)
class ToolContender:
    """One way to do what a tool does. By hand is the floor: the least statements, without what the tool is for."""

    tool: Tool
    name: str
    role: Role
    open: OPEN
    """A function that does it `count` times."""
    count: int = 1
    note: str = ""
    """What it does else, or does not do."""


@dataclass(frozen=True, slots=True)
class ZombieContender:
    """One way to work on a key, for the question whose result stands when a stopped worker wakes up."""

    tool: str
    name: str
    role: Role
    work: Callable[[Target, str, Callable[[], None]], str]
    """(target, result, body) -> the result that the caller is given. Does the work, which is `body`, and writes the
    result; or finds one that is there. Raises while another attempt is under way, or if it was refused."""


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """So many members share so many shards; a member that says nothing is given up after `ttl` seconds."""

    members: int
    shards: int
    ttl: float


@dataclass(frozen=True, slots=True)
class PartitionContender:
    """One way to be a member of a group that shares shards."""

    name: str
    role: Role
    member: Callable[[Target, PartitionPlan, Callable[[str, int], None], threading.Event], None]
    """(target, plan, tell, over): a member until `over` is set; then it leaves. It tells ("start", shard) when
    its work on a shard may begin, ("end", shard) when that has ended, and ("joins", 0) just before it joins."""
    quick: bool = True
    """Also in a quick run."""
    note: str = ""
