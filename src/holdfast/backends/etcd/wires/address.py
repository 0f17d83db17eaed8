"""`etcd://[user:password@]h1[:2379],h2,h3[?options]`, and `etcds://` for TLS.

Options, for TLS: `ca` (a file with the authorities to trust; without it the system's), `cert` and `key` (files of a
client certificate, where the cluster asks for one), `name` (the name that the members' certificates carry, if it is not
the host's). The gateway that we speak with does not tell etcd who a certificate belongs to: for that, use a password.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from ....errors import Misconfigured

if TYPE_CHECKING:
    import ssl

PORT = 2379
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
        link = socket.create_connection(self.endpoints[index], timeout)
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.tls is not None:
                return self.tls.wrap_socket(link, server_hostname=self.server_name(self.endpoints[index][0]))
        except BaseException:
            link.close()
            raise
        return link


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
