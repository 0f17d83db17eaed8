"""What a run has found of the tools: a class for each of their measurements."""

from __future__ import annotations

from dataclasses import dataclass

from bench.model import Role


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One way to do what a tool does. Seconds for one."""

    tool: str
    contender: str
    role: Role
    ratio: float
    """To the least statements by hand, of the same round."""
    ratio_ours: float
    """To holdfast, of the same round."""
    ratio_cpu: float
    """CPU time of the client's process, to that of the statements by hand."""
    taken: float
    cpu: float
    done: int
    note: str


@dataclass(frozen=True, slots=True)
class ZombieResult:
    """A worker was stopped in the middle, another did its work, and the first woke up and went on."""

    tool: str
    contender: str
    role: Role
    told: str
    """What the one that woke up was told."""
    successor: str
    """The result that the one that succeeded it was given."""
    stands: str
    """The result that whoever asks later is given."""

    @property
    def held(self) -> bool:
        """What the successor was given still holds."""
        return self.stands == self.successor


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What an event did to the shards of a group. Seconds since the event."""

    contender: str
    role: Role
    event: str
    members: int
    shards: int
    ttl: float
    moved: int
    """Shards that have another owner than before."""
    least: int
    """Those that had to move."""
    interrupted: int
    """Shards on which work had to end, also those that went back to the same owner."""
    owned: float
    """Until every shard was owned again, by members with equal shares."""
    idle_longest: float
    """The longest time in which nobody owned one and the same shard."""
    idle_total: float
    """Such times of all shards together, in shard-seconds."""
    overlaps: int
    """Shards that two members worked on at the same time, though both were alive and well."""
    note: str
