"""What a survey shows of partitions: for each a row per member, and one for the shards that nobody owns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..model import ClaimView, LockView
from ..recipes.partition_spec import Partition, member_id, read_partitions
from .views import aligned, seconds

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("partition", "shards", "member", "host", "pid", "weight", "age", "owns", "which")
RIGHT = frozenset({"shards", "pid", "weight", "age", "owns"})


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One member, or what nobody owns. `kind`: member, leaving (it owns shards and is no member any more), unowned."""

    partition: str
    shards: int
    kind: str
    member: str
    claim: ClaimView | None
    weight: int | None
    owned: tuple[int, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        claim = self.claim
        return (
            self.partition,
            str(self.shards),
            self.member if self.kind == "member" else f"{self.member} ({self.kind})".strip(),
            "" if claim is None else claim.host,
            "" if claim is None else str(claim.pid),
            "" if self.weight is None else str(self.weight),
            "" if claim is None else seconds(claim.age),
            str(len(self.owned)),
            ranges(self.owned),
        )


def rows(views: Iterable[LockView], prefix: str) -> Iterator[PartitionRow]:
    """In the order of names, then of members: the partitions whose own name begins with the prefix. Of others a survey
    may show a part, in which shards look as if nobody owned them."""
    for partition in read_partitions(views):
        if not partition.name.startswith(prefix):
            continue
        for shards in sorted(partition.counts()):
            yield from _rows(partition, shards)


def _rows(partition: Partition, shards: int) -> Iterator[PartitionRow]:
    owned: dict[str, list[int]] = defaultdict(list)
    holders: dict[str, ClaimView] = {}
    for (count, shard), claim in sorted(partition.owners.items(), key=lambda each: each[0]):
        if count == shards:
            owned[member_id(claim.owner)].append(shard)
            holders[member_id(claim.owner)] = claim
    everything = set(range(shards))
    for shard in [each for mine in owned.values() for each in mine]:
        everything.discard(shard)
    for member in partition.members:
        if member.shards == shards:
            holders.pop(member.id, None)
            mine = tuple(owned[member.id])
            yield PartitionRow(partition.name, shards, "member", member.id, member.claim, member.weight, mine)
    for leaving, claim in sorted(holders.items()):
        yield PartitionRow(partition.name, shards, "leaving", leaving, claim, None, tuple(owned[leaving]))
    if everything:
        yield PartitionRow(partition.name, shards, "unowned", "", None, None, tuple(sorted(everything)))


def ranges(numbers: Iterable[int]) -> str:
    """Short: 0-3 7 9-10."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return " ".join("-".join(map(str, part)) for part in parts)


def as_data(found: Iterable[PartitionRow]) -> list[dict[str, Any]]:
    """For programs: one entry per partition (and number of shards)."""
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for row in found:
        empty: dict[str, Any] = {
            "name": row.partition,
            "shards": row.shards,
            "members": [],
            "leaving": [],
            "unowned": [],
        }
        entry = partitions.setdefault((row.partition, row.shards), empty)
        if row.claim is None:
            entry["unowned"] = list(row.owned)
            continue
        claim = row.claim
        member = {"id": row.member, "host": claim.host, "pid": claim.pid, "age": claim.age, "owned": list(row.owned)}
        if row.kind == "member":
            entry["members"].append(member | {"weight": row.weight})
        else:
            entry["leaving"].append(member)
    return list(partitions.values())


def table(found: Iterable[PartitionRow], title: str | None = None) -> Table:
    """For a person."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for column in COLUMNS:
        keep = column not in ("partition", "host", "which")
        grid.add_column(column, justify="right" if column in RIGHT else "left", no_wrap=keep, overflow="fold")
    for row in found:
        grid.add_row(*map(Text, row.cells), style={"unowned": "red", "leaving": "yellow"}.get(row.kind))
    return grid


def plain(found: Iterable[PartitionRow]) -> str:
    """For a pipe."""
    return aligned(COLUMNS, RIGHT, (row.cells for row in found))
