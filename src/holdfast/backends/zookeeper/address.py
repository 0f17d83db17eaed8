"""`zookeeper://user:password@h1:2181,h2,h3/chroot`, or with TLS `zookeepers://…?ca=ca.pem`, taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import parse_qsl, unquote

from ...errors import Misconfigured

PORT = 2181
OPTIONS = ("ca", "cert", "key", "verify")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the servers are, and how they are spoken to."""

    hosts: tuple[tuple[str, int], ...]
    chroot: str = ""
    user: str = ""
    password: str = ""
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True
    """Whether the servers' certificates must fit; with TLS only."""

    @property
    def credentials(self) -> tuple[tuple[str, bytes], ...]:
        return (("digest", f"{self.user}:{self.password}".encode()),) if self.user else ()

    @property
    def shown(self) -> str:
        """Without the password."""
        user = f"{self.user}@" if self.user else ""
        hosts = ",".join(f"{f'[{host}]' if ':' in host else host}:{port}" for host, port in self.hosts)
        return f"zookeeper{'s' * self.tls}://{user}{hosts}{self.chroot}"


def parse(url: str) -> Address:
    """
    >>> parse("zookeeper://me:secret@a,b:2182/locks").hosts
    (('a', 2181), ('b', 2182))
    """
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    state, slash, path = rest.partition("/")
    login, at, hosts = state.rpartition("@")
    user, _, password = login.partition(":")
    chroot = unquote((slash + path).rstrip("/"))
    if "//" in chroot or not chroot.isprintable() or any(step in (".", "..") for step in chroot.split("/")):
        raise Misconfigured(f"the path {chroot!r} of the ZooKeeper URL is not one of a node; write it as /a/b")
    if at and not user:
        raise Misconfigured("the ZooKeeper URL has a password without a user; write user:password@host")
    members = tuple(_host(host) for host in hosts.split(","))
    return _with_options(Address(members, chroot, unquote(user), unquote(password), scheme == "zookeepers"), query)


class KazooClient(Protocol):
    """As much of one as we read."""

    hosts: Iterable[tuple[str, int]]
    chroot: str
    auth_data: Iterable[tuple[str, str]]
    use_ssl: bool
    ca: str | None
    certfile: str | None
    keyfile: str | None
    verify_certs: bool


def of_client(client: KazooClient) -> Address:
    """The same servers, credentials and certificates as a client of kazoo. It keeps its session, we have our own."""
    user = password = ""
    for scheme, secret in client.auth_data:
        if scheme != "digest":
            raise Misconfigured(
                f"the kazoo client has credentials of the kind {scheme!r}; holdfast can show digest ones"
            )
        user, _, password = secret.partition(":")
    return Address(
        tuple(client.hosts),
        client.chroot,
        user,
        password,
        bool(client.use_ssl),
        client.ca or "",
        client.certfile or "",
        client.keyfile or "",
        bool(client.verify_certs),
    )


def _host(text: str) -> tuple[str, int]:
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise Misconfigured(
            f"{text!r} is not a host of a ZooKeeper URL; write it as in zookeeper://h1:2181,h2,h3/chroot"
        )
    return unquote(host), int(port) if port else PORT


def _with_options(address: Address, query: str) -> Address:
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in OPTIONS:
            raise Misconfigured(f"the ZooKeeper URL has the unknown option {name!r}; there are: {', '.join(OPTIONS)}")
        if not address.tls:
            raise Misconfigured(f"{name!r} in the ZooKeeper URL is for TLS; write it as zookeepers://")
        if name == "verify" and value.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise Misconfigured(f"verify={value!r} in the ZooKeeper URL is neither true nor false")
    options = dict(parse_qsl(query, keep_blank_values=True))
    return replace(
        address,
        ca=options.get("ca", ""),
        cert=options.get("cert", ""),
        key=options.get("key", ""),
        verify=options.get("verify", "true").lower() in ("true", "1", "yes"),
    )
