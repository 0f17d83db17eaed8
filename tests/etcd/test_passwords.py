"""Clusters with users: members that hang while one logs in, and passwords that are switched off and on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import NEW_EVENT, NOW, Endpoint, Flow, Spawn
from holdfast.backends.etcd.connector import Connector
from holdfast.backends.etcd.handshake import Login
from holdfast.backends.etcd.rpc import Answer, Rejected, Rpc
from holdfast.errors import Misconfigured
from holdfast.sync.client_driver import Monitor
from tests.etcd.cluster import Cluster, Member, running
from tests.etcd.secured import PASSWORD, USER, with_password

both = pytest.mark.parametrize("face", ["sync", "asyncio"])


def switch_on(member: Member) -> None:
    member.rpc("/v3/auth/enable")


def switch_off(member: Member) -> None:
    token = member.rpc("/v3/auth/authenticate", name="root", password="root")["token"]
    member.rpc("/v3/auth/disable", token=token)


def taken(face: str, url: str, **options: Any) -> int:
    """Connect, and take a lock."""

    async def awaited() -> int:
        async with holdfast.aio.connect(url, **options) as locks, locks.lock("door", timeout=20) as lease:
            return lease.token

    if face == "asyncio":
        return asyncio.run(awaited())
    with holdfast.connect(url, **options) as locks, locks.lock("door", timeout=20) as lease:
        return lease.token


@both
@pytest.mark.parametrize("which", ["follower", "leader"])
def test_a_member_that_hangs_keeps_nobody_from_logging_in(face: str, which: str) -> None:
    """Not the first of the URL, and not the leader: another one is elected, and asked again."""
    with running(3) as cluster:
        leader = cluster.leader()
        [first, second] = cluster.followers()
        first.rpc("/v3/auth/user/add", name="root", password="root")
        first.rpc("/v3/auth/user/grant", user="root", role="root")
        switch_on(first)
        cluster.userinfo = "root:root@"
        hung = first if which == "follower" else leader
        hung.pause()
        try:
            assert taken(face, cluster.url_of(first, second, leader), request_timeout=9.0)
        finally:
            hung.resume()


def url_of(cluster: Cluster) -> str:
    return f"etcd://{USER}:{quote(PASSWORD, safe='')}@{cluster.members[0].endpoint}"


@both
def test_passwords_may_be_switched_off_and_on_again(face: str) -> None:
    """Whoever has one goes on, and keeps what it holds: as with etcd's own clients."""
    with with_password() as cluster:
        [member] = cluster.members

        async def awaited() -> None:
            async with holdfast.aio.connect(url_of(cluster), ttl=30) as locks:
                lease = await locks.lock("held").acquire()
                for switch in (switch_off, switch_on, switch_off):
                    await asyncio.to_thread(switch, member)
                    async with locks.lock("door", timeout=20):
                        await lease.renew()
                assert await lease.release()

        if face == "asyncio":
            asyncio.run(awaited())
        else:
            with holdfast.connect(url_of(cluster), ttl=30) as locks:
                lease = locks.lock("held").acquire()
                for switch in (switch_off, switch_on, switch_off):
                    switch(member)
                    with locks.lock("door", timeout=20):
                        lease.renew()
                assert lease.release()
        assert taken(face, url_of(cluster))  # they are off now


def test_a_wrong_password_says_whose_it_is() -> None:
    with with_password() as cluster:
        for word in ("wrong", ""):
            with pytest.raises(Misconfigured, match=f"{USER!r} log in.*user:password@ in the URL"):
                taken("sync", f"etcd://{USER}:{word}@{cluster.members[0].endpoint}")


def test_who_is_interrupted_as_a_log_in_begins_leaves_the_next_one_to_others() -> None:
    """A signal that raises, in the thread that starts another for it: nobody waits for a log-in that never began."""

    def answered(rpcs: Sequence[Rpc], deadline: float) -> Flow[list[Answer | Rejected]]:
        yield NOW
        return [{"token": "good"}]

    connector = Connector([Endpoint("a", 2379)], "etcd://a")
    login = Login(connector, "user", "password", 3600.0, answered)
    interrupted = login.replace(None, 3600.0)
    op = next(interrupted)
    while not isinstance(op, Spawn):
        assert op is NEW_EVENT or op is NOW
        op = next(interrupted)
    with pytest.raises(KeyboardInterrupt):
        interrupted.throw(KeyboardInterrupt())
    Monitor().run(login.replace(None, 0.0))
    assert connector.token == "good"
