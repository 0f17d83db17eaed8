"""Refusals in ZooKeeper: a node per fenced path, read with kazoo, which whoever has such a fence has, too."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from ..backends.zookeeper.address import Address, parse
from ..errors import Misconfigured
from ..fenced.refusal import RefusalRecord
from ..fenced.zookeeper.refusal_node import ROOT, record_of
from ..fenced.zookeeper.requests import means
from ..fenced.zookeeper.requests import read as read_node


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    client = _client(parse(url), request_timeout)
    client.start(timeout=request_timeout)
    try:
        found = []
        for name in _children(client):
            node = read_node(client, f"{ROOT}/{name}")
            if node is not None:
                found.append(record_of(unquote(name), node[0]))
        return found
    finally:
        client.stop()
        client.close()


def _children(client: Any) -> list[str]:
    try:
        return sorted(client.get_children(ROOT))
    except Exception as error:
        if means(error, "NoNodeError"):
            return []
        raise


def _client(address: Address, request_timeout: float) -> Any:
    try:
        from kazoo.client import KazooClient
    except ImportError as error:
        raise Misconfigured("the refusals of a ZooKeeper fence are read with kazoo; pip install kazoo") from error
    hosts = ",".join(f"{f'[{host}]' if ':' in host else host}:{port}" for host, port in address.hosts)
    return KazooClient(
        hosts + address.chroot,
        timeout=request_timeout,
        read_only=True,
        auth_data=[(scheme, secret.decode()) for scheme, secret in address.credentials],
        use_ssl=address.tls,
        ca=address.ca or None,
        certfile=address.cert or None,
        keyfile=address.key or None,
        verify_certs=address.verify,
    )
