"""The URL: all that libpq understands, `postgresql://user@host,other/database?option=…`.

1. Where to connect to is an attempt for each address of each host, one after the other; libpq gets one at a time. It
   would look up names itself, and wait for that without a bound.
2. Hosts are tried in the order of the URL, or by chance (`load_balance_hosts=random`). A server that is not what
   `target_session_attrs` asks for is refused by libpq; the next one is tried.
3. Keep-alives are on, so that a dead peer is noticed.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from ...errors import Misconfigured
from ..relational.url import shown
from .protocol import Parameters
from .transport import driver

DEFAULTS = {
    "application_name": "holdfast",
    "client_encoding": "utf8",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
ENVIRONMENT = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
"""Libpq's own variables, for what is decided here."""
LEAST_CONNECT_TIMEOUT_S = 2.0
"""Libpq's own: less is not believed."""


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL says."""

    parameters: Parameters

    def option(self, name: str) -> str:
        return self.parameters.get(name) or os.environ.get(ENVIRONMENT[name], "")

    @property
    def shuffled(self) -> bool:
        """Whether the attempts are made in the order of chance."""
        return self.option("load_balance_hosts") == "random"

    @property
    def most_per_attempt_s(self) -> float:
        """How long one attempt may take, where the user has said so."""
        seconds = float(self.option("connect_timeout") or 0)
        return max(LEAST_CONNECT_TIMEOUT_S, seconds) if seconds > 0 else float("inf")

    def attempts(self) -> list[Parameters]:
        """Where to connect to, one after the other. It blocks, for host names are looked up."""
        found: list[Parameters] = []
        failure: OSError | None = None
        for attempt in self._hosts():
            try:
                found += self._looked_up(attempt)
            except OSError as error:
                failure = OSError(f"failed to resolve host {attempt.get('host')!r}: {error}")
        if not found:
            assert failure is not None
            raise failure
        return found

    def in_turn(self, attempts: list[Parameters]) -> list[Parameters]:
        """With `prefer-standby`, standbys are tried first."""
        if self.option("target_session_attrs") != "prefer-standby":
            return attempts
        return [{**attempt, "target_session_attrs": which} for which in ("standby", "any") for attempt in attempts]

    def _hosts(self) -> list[Parameters]:
        lists = {
            name: self.option(name).split(",") if self.option(name) else [] for name in ("host", "hostaddr", "port")
        }
        hosts, addresses, ports = lists.values()
        if hosts and addresses and len(hosts) != len(addresses):
            raise OSError(f"could not match {len(hosts)} host names with {len(addresses)} hostaddr values")
        count = max(len(hosts), len(addresses))
        if 1 < len(ports) != count:
            raise OSError(f"could not match {len(ports)} port numbers to {len(hosts)} hosts")
        if count <= 1:
            return [self.parameters]
        if len(ports) == 1:
            lists["port"] = ports * count
        return [
            {**self.parameters, **{name: values[number] for name, values in lists.items() if values}}
            for number in range(count)
        ]

    def _looked_up(self, attempt: Parameters) -> list[Parameters]:
        host = attempt.get("host") or self.option("host")
        if not host or host.startswith(("/", "@")) or attempt.get("hostaddr") or self.option("hostaddr"):
            return [attempt]
        try:
            return [{**attempt, "hostaddr": str(ip_address(host))}]
        except ValueError:
            pass  # a name
        port = attempt.get("port") or self.option("port") or None
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return [{**attempt, "host": host, "hostaddr": str(each[4][0])} for each in found]


def read_url(url: str) -> Address:
    psycopg = driver()
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        known = shown(url)  # what libpq quotes may be a piece of the password
        why = re.sub(r'"([^"]*)"', lambda quoted: quoted[0] if quoted[1] in known else '"…"', str(error).strip())
        raise Misconfigured(f"{known!r} is not a URL that libpq understands: {why}") from None
    if "@" in f"{given.get('host')}" or ("@" in f"{given.get('dbname')}" and "user" not in given):
        raise Misconfigured(
            f"{shown(url)!r} cannot be read: write / as %2F, @ as %40 and : as %3A in a user or password"
        )
    address = Address({**DEFAULTS, **{name: str(value) for name, value in given.items()}})
    try:
        address.most_per_attempt_s  # noqa: B018
    except ValueError:
        raise Misconfigured(
            f"{shown(url)!r} has a connect_timeout that is not a number: {address.option('connect_timeout')!r}"
        ) from None
    return address
