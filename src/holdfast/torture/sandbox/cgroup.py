"""A control group that throttles its members by a processor quota (cgroup v1 or v2). Needs root."""

from __future__ import annotations

import itertools
from pathlib import Path

from .sandbox import NotAvailable, Sandbox, is_root

PERIOD_US = 100_000
_V1 = Path("/sys/fs/cgroup/cpu")
_V2 = Path("/sys/fs/cgroup")
_numbers = itertools.count(1)


class CpuQuota:
    """A group with a share of one processor."""

    def __init__(self, sandbox: Sandbox, share: float) -> None:
        if why_not():
            raise NotAvailable(why_not())
        parent = _parent()
        assert parent is not None
        self._home = parent
        self._group = parent / f"holdfast-{sandbox.folder.name[-8:]}-{next(_numbers)}"
        try:
            self._group.mkdir()
            sandbox.enter("cgroup", str(self._group))
            quota = max(1000, int(share * PERIOD_US))
            if parent == _V1:
                (self._group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (self._group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (self._group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        except OSError as error:
            raise NotAvailable(f"no control group can be made: {error}") from error

    def throttle(self, pids: list[int]) -> None:
        _move(self._group, pids)

    def restore(self, pids: list[int]) -> None:
        _move(self._home, pids)


def _move(group: Path, pids: list[int]) -> None:
    for pid in pids:
        try:
            (group / "cgroup.procs").write_text(str(pid))
        except OSError:
            pass  # it has just ended


def _parent() -> Path | None:
    if (_V1 / "cpu.cfs_quota_us").exists():
        return _V1
    controllers = _V2 / "cgroup.subtree_control"
    if controllers.exists() and "cpu" in controllers.read_text().split():
        return _V2
    return None


def why_not() -> str:
    if not is_root():
        return "control groups need root"
    return "" if _parent() is not None else "the kernel offers no processor quota here (cgroup controller cpu)"
