"""URLs: several members, TLS, users and passwords; and what is wrong with a URL is said at once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.etcd.address import parse
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.etcd.cluster import Cluster, await_true, free_ports
from tests.etcd.secured import PASSWORD, USER, jwt_words, with_password, with_tls

both = pytest.mark.parametrize("face", ["sync", "asyncio"])


def pair(face: str, url: str, **options: Any) -> int:
    """Connect, take a lock, have another wait for it, survey, release. Answers with the second token."""

    async def awaited() -> int:
        async with holdfast.aio.connect(url, **options) as locks:
            lease = await locks.lock("orders/7", timeout=10).acquire()
            waiter = asyncio.ensure_future(locks.lock("orders/7", timeout=20).acquire())
            await until_somebody_waits(locks)
            await lease.renew()
            assert await lease.release()
            following = await waiter
            assert await following.release()
            return following.token

    if face == "asyncio":
        return asyncio.run(awaited())
    with holdfast.connect(url, **options) as locks:
        lease = locks.lock("orders/7", timeout=10).acquire()
        with_other: list[Any] = []
        waiter = threading.Thread(target=lambda: with_other.append(locks.lock("orders/7", timeout=20).acquire()))
        waiter.start()
        await_true(lambda: [view for view in locks.survey("orders/7") if view.waiters], "a waiter")
        lease.renew()
        assert lease.release()
        waiter.join(30)
        assert with_other[0].release()
        token: int = with_other[0].token
        return token


async def until_somebody_waits(locks: holdfast.aio.Coordinator) -> None:
    for _ in range(3000):
        if [view for view in await locks.survey("orders/7") if view.waiters]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain for a waiter")


@both
def test_tls_with_an_authority_and_a_client_certificate(face: str) -> None:
    with with_tls() as (cluster, folder):
        assert pair(face, cluster.url) > 0
        endpoint = cluster.members[0].endpoint
        localhost = endpoint.replace("127.0.0.1", "localhost")
        assert pair(face, f"etcds://{localhost}{cluster.query}") > 0
        for wrong in (f"etcds://{endpoint}", f"etcds://{endpoint}?ca={folder}/ca.pem", f"etcd://{endpoint}"):
            with pytest.raises(BackendUnavailable):
                pair(face, wrong)
        with pytest.raises(BackendUnavailable, match="reached"):
            pair(face, f"{cluster.url}&name=elsewhere.example")


@both
def test_a_user_with_a_role_for_the_namespace(face: str) -> None:
    with with_password() as cluster:
        endpoint = cluster.members[0].endpoint
        assert pair(face, f"etcd://{USER}:{quote(PASSWORD, safe='')}@{endpoint}") > 0
        with pytest.raises(Misconfigured):  # a namespace that the role does not have
            pair(face, f"etcd://{USER}:{quote(PASSWORD, safe='')}@{endpoint}", namespace="other")
        with pytest.raises(Misconfigured):
            pair(face, f"etcd://{endpoint}")
        with pytest.raises(Misconfigured):
            pair(face, f"etcd://{USER}:wrong@{endpoint}")


@both
def test_a_token_that_etcd_forgot_is_asked_for_again(face: str) -> None:
    """As when it has not been used for five minutes; here, because passwords were switched off and on again."""
    with with_password() as cluster:
        url = f"etcd://{USER}:{quote(PASSWORD, safe='')}@{cluster.members[0].endpoint}"

        async def awaited() -> None:
            async with holdfast.aio.connect(url) as locks:
                async with locks.lock("door"):
                    pass
                forget_tokens(cluster)
                async with locks.lock("door", timeout=20):
                    pass

        if face == "asyncio":
            asyncio.run(awaited())
            return
        with holdfast.connect(url) as locks:
            with locks.lock("door"):
                pass
            forget_tokens(cluster)
            with locks.lock("door", timeout=20):
                pass


@both
def test_a_change_of_a_role_or_user_costs_nothing_where_tokens_are_signed(face: str, tmp_path: Path) -> None:
    """A signed token carries the revision of the users and roles that it was made under: another one is asked for."""
    with with_password(*jwt_words(tmp_path)) as cluster:
        url = f"etcd://{USER}:{quote(PASSWORD, safe='')}@{cluster.members[0].endpoint}"

        def change(number: int) -> None:
            [member] = cluster.members
            token = member.rpc("/v3/auth/authenticate", name="root", password="root")["token"]
            member.rpc("/v3/auth/user/add", name=f"somebody{number}", password="else", token=token)

        async def awaited() -> None:
            async with holdfast.aio.connect(url, ttl=6.0) as locks:
                lease = await locks.lock("held").acquire()
                for number in range(2):
                    await asyncio.to_thread(change, number)
                    async with locks.lock("door", timeout=20):
                        pass
                    assert await locks.survey("held")
                await lease.renew()
                await asyncio.to_thread(change, 2)
                assert await lease.release()

        if face == "asyncio":
            asyncio.run(awaited())
            return
        with holdfast.connect(url, ttl=6.0) as locks:
            lease = locks.lock("held").acquire()
            for number in range(2):
                change(number)
                with locks.lock("door", timeout=20):
                    pass
                assert locks.survey("held")
            lease.renew()
            change(2)
            assert lease.release()


def forget_tokens(cluster: Cluster) -> None:
    [member] = cluster.members
    token = member.rpc("/v3/auth/authenticate", name="root", password="root")["token"]
    member.rpc("/v3/auth/disable", token=token)
    member.rpc("/v3/auth/enable")


@both
def test_members_that_are_not_there_are_passed_over(face: str, state_cluster: Cluster) -> None:
    [nobody] = free_ports(1)
    url = f"etcd://127.0.0.1:{nobody},{state_cluster.members[1].endpoint}"
    assert pair(face, url) > 0
    with pytest.raises(BackendUnavailable, match="reached"):
        pair(face, f"etcd://127.0.0.1:{nobody}")


@both
def test_who_speaks_without_tls_to_one_that_wants_it_is_told(face: str) -> None:
    with with_tls() as (cluster, folder):
        [member] = cluster.members
        with pytest.raises(BackendUnavailable, match="TLS"):
            pair(face, f"etcd://{member.endpoint}")
        with pytest.raises(BackendUnavailable, match="client certificate"):
            pair(face, f"etcds://{member.endpoint}?ca={folder}/ca.pem")


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("etcd://", "host"),
        ("etcd://h1,,h2", "host"),
        ("etcd://h1:port", "h1:port"),
        ("etcd://h1:0", "h1:0"),
        ("etcd://h1?colour=green", "colour"),
        ("etcd://h1?ca=/tmp/ca.pem", "etcds"),
        ("etcds://h1?ca=/nowhere/ca.pem", "certificates cannot be read from /nowhere/ca.pem"),
        ("etcds://h1?cert=/nowhere/a.pem&key=/nowhere/b.pem", "from /nowhere/a.pem and /nowhere/b.pem"),
        ("etcds://h1?key=/nowhere/b.pem", "key without cert"),
        ("etcd://::1", "brackets"),
        ("etcd://h1,fe80::1:2379", "brackets"),
        ("etcd://h1:\u00b2", "host"),
        ("etcd://keeper:what?@h1", "%3F"),
    ],
)
def test_what_is_wrong_with_a_url_is_said(url: str, what: str) -> None:
    with pytest.raises(Misconfigured, match=what):
        holdfast.connect(url)


def test_no_secret_is_shown(state_cluster: Cluster) -> None:
    address = parse("etcd://keeper:s3cret@h1,[::1]:2380")
    assert address.url == "etcd://h1,[::1]:2380"
    assert address.hosts == (("h1", 2379), ("::1", 2380))
    assert "s3cret" not in repr(address)
    with pytest.raises(Misconfigured) as told:
        parse("etcd://keeper:s3cret?@h1")
    assert "s3cret" not in str(told.value)
