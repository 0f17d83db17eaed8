"""`etcd://[user:password@]h1[:2379],h2,h3[?options]`, and `etcds://` for TLS.

Options, for TLS: `ca` (a file with the authorities to trust; without it the system's), `cert` and `key` (files of a
client certificate, where the cluster asks for one), `name` (the name that the members' certificates carry, if it is not
the host's). The gateway that we speak with does not tell etcd who a certificate belongs to: for that, use a password.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from ...errors import Misconfigured

DEFAULT_PORT = 2379
OPTIONS = ("ca", "cert", "key", "name")


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Where a cluster is, and as whom to speak with it."""

    url: str
    """Without secrets."""
    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False
    options: dict[str, str] = field(default_factory=dict)


def parse(url: str) -> ClusterAddress:
    scheme, _, rest = url.partition("://")
    body, _, query = rest.partition("?")
    if "@" in query and "@" not in body:
        raise Misconfigured(f"{scheme}://: there is a '?' in the user or the password; write it as %3F")
    userinfo, _, hosts = body.rstrip("/").rpartition("@")
    shown = f"{scheme}://{hosts}"
    user, _, password = userinfo.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for option in options:
        if option not in OPTIONS:
            raise Misconfigured(f"{shown}: {option!r} is no option of etcd; there are: {', '.join(OPTIONS)}")
    if options and scheme != "etcds":
        raise Misconfigured(f"{shown}: {', '.join(options)} is for TLS; write etcds://")
    if "key" in options and "cert" not in options:
        raise Misconfigured(f"{shown}: key without cert; give both files of the client certificate")
    members = tuple(_host(shown, host) for host in hosts.split(","))
    return ClusterAddress(shown, members, unquote(user), unquote(password), scheme == "etcds", options)


def _host(shown: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:  # no port, or [::1]
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise Misconfigured(f"{shown}: {text!r} is no host and port; write an IPv6 address in brackets: [::1]:2379")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Misconfigured(f"{shown}: {text!r} is no host and port; write etcd://host1:2379,host2:2379")
    return host, int(port)
