"""etcd: one member, or a cluster of three, with or without users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from holdfast import clock
from holdfast._core.flow import Flow
from holdfast.backends.etcd.engine import open_engine
from holdfast.ports import Opened

from ...servers.etcd.cluster import ClusterSettings, EtcdCluster
from ...servers.etcd.commands import ALARM_ACTIONS, ALARMS, Admin, Alarm
from ...servers.etcd.leases import Lease
from ...servers.etcd.member import EtcdMember
from ...servers.model import Memory
from ..machine import EPOCH_S, Listener
from .base import SimulatedEngine

if TYPE_CHECKING:
    from ..process import ClientProcess
    from ..world import ByteWorld

PORT_NUMBER = 2379
ELECTION_S = 0.5
ROOT = b"holdfast/"
RATES = b"holdfast/rate/"
TOKEN_TTL_S = 3.0
USER, PASSWORD = "locks", "secret"


class SimulatedEtcd(SimulatedEngine):
    name = "etcd"
    ttls = (1.0, 2.0, 3.0)
    remains_s = 8.0
    """A lease is at least one and a half election timeouts long, and has an election timeout more when one is lost."""
    after_close_s = 0.5
    most_connections = 16
    most_tasks = 6

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        count = world.chance.choice((1, 3, 3))
        hosts = [world.host(f"e{number}") for number in range(1, count + 1)]
        signed = world.chance.random() < 0.5
        settings = ClusterSettings(
            election_s=ELECTION_S, heartbeat_s=0.05, token_ttl_s=TOKEN_TTL_S, signed_tokens=signed
        )
        self._cluster = EtcdCluster(hosts, settings)
        self._user = ""
        if world.chance.random() < 0.3:
            self._user = f"{USER}:{PASSWORD}@"
            self._cluster.require_login({USER: PASSWORD}, ROOT)
        self._members: dict[str, EtcdMember] = {}
        for host, member in zip(hosts, self._cluster.members, strict=True):
            self._members[host.name] = member
            self.listen(Listener(host, member))

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        hosts = ",".join(f"{listener.host.name}:{PORT_NUMBER}" for listener in self.listeners)
        with patch.object(clock, "calendar_us", lambda: int((EPOCH_S + self.world.timeline.now) * 1e6)):
            engine = open_engine(f"etcd://{self._user}{hosts}", "holdfast", self.world.profile.request_timeout)
        return engine.open()

    # Faults

    def begin_hang(self, listener: Listener) -> None:
        self._members[listener.host.name].pause()

    def end_hang(self, listener: Listener) -> None:
        member = self._members[listener.host.name]
        if member.paused:
            member.resume()

    def wipe(self, seconds: float, backup: bool) -> None:
        """All members, as one cluster; the users would be lost, too, so never where there are any. Never from a backup,
        as with ZooKeeper: leases would come back with their keys, which somebody keeps alive."""
        if self._user:
            return
        self.world.fault("servers come back with nothing")
        for listener in self.listeners:
            listener.stop()
        self.world.timeline.at(self.world.timeline.now + seconds, self._begin_anew)

    def _begin_anew(self) -> None:
        for listener in self.listeners:
            if listener.up:
                listener.stop()
        self._cluster.start(Memory.NOTHING)
        for listener in self.listeners:
            listener.up, listener.lost = True, False
        self.world.trace("e*", "all start with nothing of their memory")
        self.world.invariants.forgotten()

    def _administer(self, *commands: Admin | Alarm) -> bool:
        """False if no majority can be told at this moment."""
        leader = self._cluster.leader
        if leader is None or not self._cluster.has_majority(leader):
            return False
        self._cluster.administer(*commands)
        return True

    def _administer_soon(self, command: Admin | Alarm) -> None:
        if not self._administer(command):
            self.refuses_log_ins(0.1)
            self.until(0.1, lambda: self._administer_soon(command))

    def fill_up(self, seconds: float) -> None:
        """The alarm NOSPACE: nothing is written, and leases are kept alive."""
        member = self._cluster.members[0].id
        if self._administer(Alarm(ALARM_ACTIONS.index("ACTIVATE"), member, ALARMS.index("NOSPACE"))):
            self.told("is full", seconds)
            off = Alarm(ALARM_ACTIONS.index("DEACTIVATE"), member, ALARMS.index("NOSPACE"))
            self.until(seconds, lambda: self._administer_soon(off))

    def change_password(self, seconds: float) -> None:
        if self._user and self._administer(Admin("user/changepw", USER, "another")):
            self.told("has another password", seconds)
            self.refuses_log_ins(seconds)
            self.until(seconds, lambda: self._administer_soon(Admin("user/changepw", USER, PASSWORD)))

    def special_fault(self, seconds: float) -> None:
        world, cluster = self.world, self._cluster
        member = world.chance.choice(cluster.members)
        if world.chance.random() < 0.5 and cluster.leader is not None:
            member = cluster.leader
        end = world.timeline.now + seconds
        kind = world.chance.choice(("disk hangs", "isolated", "lags", "token", "moves"))
        if kind == "disk hangs" and member.up:
            member.disk_hangs = True
            world.timeline.at(end, self._mend_disk, member)
        elif kind == "isolated":
            cluster.isolate(member.number)
            world.timeline.at(end, cluster.heal)
        elif kind == "lags":
            member.lag_s = 0.2
            world.timeline.at(end, self._catch_up, member)
        elif kind == "token" and self._user and self._administer(Admin("role/add", f"r{world.timeline.now}")):
            pass  # signed tokens are old from now on
        elif kind == "moves" and cluster.leader is not None and member.takes_part:
            cluster.move_leader(member.number)
        else:
            return
        world.fault(f"member: {kind}")
        world.trace(f"e{member.number + 1}", "{} for {:.3f} s", kind, seconds)

    def _mend_disk(self, member: EtcdMember) -> None:
        if member.disk_hangs:
            member.disk_hangs = False

    def _catch_up(self, member: EtcdMember) -> None:
        member.lag_s = 0.0

    def end_faults(self) -> None:
        super().end_faults()
        for member in self._cluster.members:
            self._mend_disk(member)
            self._catch_up(member)
        self._cluster.heal()

    # What may be left

    def _leader(self) -> EtcdMember:
        leader = self._cluster.leader
        assert leader is not None, "a cluster without faults has a leader"
        return leader

    def leftovers(self) -> list[str]:
        keys = self._leader().state.store._live
        claims = (key for key in keys if b"\0~~" not in key)  # an end note stays for a day
        return [key.decode(errors="replace") for key in claims if not key.startswith(RATES)]

    def growth(self) -> dict[str, tuple[int, int]]:
        running = sum(not process.crashed for process in self.world.processes)
        return {"leases": (len(self._leader().state.lessor.leases), 4 * running)}

    def after_close(self) -> dict[str, int]:
        leases = self._leader().state.lessor.leases.values()
        return {**super().after_close(), "leases with keys": sum(bool(_claims(lease)) for lease in leases)}


def _claims(lease: Lease) -> list[bytes]:
    """A limiter's count stays for a while by itself."""
    return [key for key in lease.keys if not key.startswith(RATES)]
