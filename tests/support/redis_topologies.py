"""More than one Redis server: replicas, sentinels, a cluster; and one that speaks TLS."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holdfast.torture.sandbox.loopback import free_port
from tests.support.redis_server import RedisServer, free_ports, plain

PATIENCE = 30.0


def await_true(look: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


@contextmanager
def started(*servers: RedisServer) -> Iterator[None]:
    with ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.stop)
        yield


@contextmanager
def with_replicas(count: int, **settings: str) -> Iterator[tuple[RedisServer, list[RedisServer]]]:
    """A primary and its replicas, in step with it."""
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as folder:
        primary, *others = free_ports(1 + count)
        first = plain(Path(folder) / "primary", primary, **settings)
        replicas = [
            plain(
                Path(folder) / f"replica{n}",
                port,
                replicaof=f"127.0.0.1 {primary}",
                repl_diskless_sync_delay="0",
                **settings,
            )
            for n, port in enumerate(others)
        ]
        first.settings["repl-diskless-sync-delay"] = "0"
        with started(first, *replicas):
            client = first.client()
            await_true(lambda: _in_step(client.info("replication"), count), "replicas in step")
            client.close()
            yield first, replicas


def _in_step(info: dict[str, object], count: int) -> bool:
    online = [v for k, v in info.items() if k.startswith("slave") and isinstance(v, dict) and v["state"] == "online"]
    return len(online) == count


@contextmanager
def with_sentinel() -> Iterator[tuple[str, RedisServer, RedisServer]]:
    """A primary, a replica, and one sentinel that is quick to fail over. Gives its URL and both servers."""
    with with_replicas(1) as (primary, [replica]), tempfile.TemporaryDirectory(prefix="hf-redis-") as folder:
        [port] = free_ports(1)
        conf = Path(folder) / "sentinel.conf"
        conf.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nunixsocket {folder}/redis.sock\n"
            f"sentinel monitor main 127.0.0.1 {primary.port} 1\n"
            "sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 2000\n"
        )
        sentinel = RedisServer(Path(folder), port, ["redis-server", str(conf), "--sentinel"], {})
        with started(sentinel):
            await_true(lambda: b"num-slaves\r\n$1\r\n1" in sentinel.raw("SENTINEL", "MASTER", "main"), "the sentinel")
            yield f"redis+sentinel://127.0.0.1:{port}/main", primary, replica


@contextmanager
def with_cluster(count: int = 3, *, replicas: bool = False) -> Iterator[list[RedisServer]]:
    """Primaries that share the slots among them; with `replicas`, as many more servers, each the replica of one.

    A replica takes over when its primary has been silent for about two seconds.
    """
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as folder:
        servers = [
            plain(
                Path(folder) / str(port),
                port,
                cluster_enabled="yes",
                cluster_port=str(free_port()),
                cluster_config_file="nodes.conf",
                cluster_node_timeout="1500" if replicas else "15000",
                repl_diskless_sync_delay="0",
            )
            for port in free_ports(2 * count if replicas else count)
        ]
        nodes, others = servers[:count], servers[count:]
        with started(*servers):
            for number, node in enumerate(nodes):
                first, last = 16384 * number // count, 16384 * (number + 1) // count - 1
                assert node.raw("CLUSTER", "ADDSLOTSRANGE", str(first), str(last)) == b"+OK\r\n"
                assert node.raw("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1)) == b"+OK\r\n"
            for node in nodes[1:]:
                nodes[0].raw("CLUSTER", "MEET", "127.0.0.1", str(node.port), node.settings["cluster-port"])
            await_true(lambda: all(b"cluster_state:ok" in n.raw("CLUSTER", "INFO") for n in nodes), "the cluster")
            await_true(lambda: all(_knows(n, count) for n in nodes), "all nodes to know all")
            for node, replica in zip(nodes, others, strict=False):
                _follow(replica, node)
            if others:
                await_true(lambda: all(b"slave0:" in n.raw("INFO", "replication") for n in nodes), "the replicas")
                await_true(lambda: all(_knows(n, count) for n in servers), "the replicas to know all")
            yield servers


def _follow(replica: RedisServer, primary: RedisServer) -> None:
    """Join the cluster of a primary, as its replica."""
    name = primary.raw("CLUSTER", "MYID").split(b"\r\n")[1].decode()
    replica.raw("CLUSTER", "MEET", "127.0.0.1", str(primary.port), primary.settings["cluster-port"])
    await_true(lambda: replica.raw("CLUSTER", "REPLICATE", name) == b"+OK\r\n", "the replica to know its primary")


def _knows(node: RedisServer, count: int) -> bool:
    return node.raw("CLUSTER", "SLOTS").startswith(b"*%d\r\n" % count)


@contextmanager
def with_tls(**settings: str) -> Iterator[tuple[RedisServer, Path]]:
    """A server that speaks TLS on its port, and its throw-away certificate, which is its own authority."""
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as name:
        folder = Path(name)
        key, certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        [port] = free_ports(1)
        server = plain(
            folder / "server",
            0,
            tls_port=str(port),
            tls_cert_file=str(certificate),
            tls_key_file=str(key),
            tls_ca_cert_file=str(certificate),
            tls_auth_clients="no",
            **settings,
        )
        with started(server):
            server.port = port
            yield server, certificate
