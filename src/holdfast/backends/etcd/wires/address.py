"""`etcd://[user:password@]h1[:2379],h2,h3[?options]`, and `etcds://` for TLS.

Options, for TLS: `ca` (a file with the authorities to trust; without it the system's), `cert` and `key` (files of a
client certificate, where the cluster asks for one), `name` (the name that the members' certificates carry, if it is not
the host's). The gateway that we speak with does not tell etcd who a certificate belongs to: for that, use a password.
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from ....errors import Misconfigured

if TYPE_CHECKING:
    import ssl

PORT = 2379
NUMERIC = socket.AI_NUMERICHOST
OPTIONS = ("ca", "cert", "key", "name")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a cluster is, and as whom to speak with it."""

    url: str
    """Without secrets."""
    endpoints: tuple[tuple[str, int], ...]
    user: str = ""
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    name: str = ""

    def server_name(self, host: str) -> str:
        return self.name or host

    def dial(self, index: int, timeout: float) -> socket.socket:
        """A connection to a member: its name looked up, dialled and TLS agreed upon, all within `timeout`."""
        end = time.monotonic() + timeout
        host, port = self.endpoints[index]
        for family, where in resolve(host, port, timeout):
            link = socket.socket(family, socket.SOCK_STREAM)
            try:
                link.settimeout(max(0.001, end - time.monotonic()))
                link.connect(where)
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                if self.tls is None:
                    return link
                link.settimeout(max(0.001, end - time.monotonic()))
                return self.tls.wrap_socket(link, server_hostname=self.server_name(host))
            except OSError as error:
                link.close()
                failure = error
            except BaseException:
                link.close()
                raise
        raise failure


def resolve(host: str, port: int, timeout: float) -> list[tuple[int, Any]]:
    """Families and addresses of a host. What is no address already is looked up aside: that knows no time-out."""
    try:
        return [(each[0], each[4]) for each in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, NUMERIC)]
    except socket.gaierror:
        pass  # a name
    found: list[list[tuple[int, Any]] | OSError] = []

    def look_up() -> None:
        try:
            found.append([(each[0], each[4]) for each in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)])
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=look_up, name="holdfast-resolve", daemon=True)
    thread.start()
    thread.join(timeout)
    if not found:
        raise TimeoutError(f"the name {host!r} was not resolved within {timeout:.3g} s")
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def of_url(url: str) -> Address:
    scheme, _, rest = url.partition("://")
    body, _, query = rest.partition("?")
    userinfo, _, hosts = body.rstrip("/").rpartition("@")
    shown = f"{scheme}://{hosts}"
    user, _, password = userinfo.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for option in options:
        if option not in OPTIONS:
            raise Misconfigured(f"{shown}: {option!r} is no option of etcd; there are: {', '.join(OPTIONS)}")
    if options and scheme != "etcds":
        raise Misconfigured(f"{shown}: {', '.join(options)} is for TLS; write etcds://")
    endpoints = tuple(_endpoint(shown, host) for host in hosts.split(","))
    tls = _context(shown, options) if scheme == "etcds" else None
    return Address(shown, endpoints, unquote(user), unquote(password), tls, options.get("name", ""))


def _endpoint(shown: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:  # no port, or [::1]
        host, port = text, str(PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise Misconfigured(f"{shown}: {text!r} is no host and port; write etcd://host1:2379,host2:2379")
    return host, int(port)


def _context(shown: str, options: dict[str, str]) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=options.get("ca") or None)
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key") or None)
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(f"{shown}: the certificates can not be read: {error}") from error
    return context
