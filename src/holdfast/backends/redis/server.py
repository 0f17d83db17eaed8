"""A server, and a service that sentinels watch: where it is, and as whom to log in, in the words of redis-py's options.

What redis-py makes of its options (TLS most of all) is asked of its own connection class, which is never connected.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._core.flow import Endpoint
from ...errors import Misconfigured

WHERE = frozenset(
    {"host", "port", "path", "db", "username", "password", "credential_provider", "client_name", "protocol"}
    | {"socket_keepalive", "socket_keepalive_options", "socket_type", "driver_info", "lib_name", "lib_version"}
)
OCSP = ("ssl_validate_ocsp", "ssl_validate_ocsp_stapled")


def need_redis_py() -> Any:
    try:
        import redis
    except ImportError as error:
        raise Misconfigured("redis:// needs redis-py; install it with: pip install 'holdfast[redis]'") from error
    return redis


@dataclass(frozen=True, slots=True)
class Server:
    """One server, by the name of redis-py's connection class and its arguments, a password among them."""

    kind: str = "Connection"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """Where, as it is shown to users."""
        return str(self.options.get("path") or Endpoint(self.host, self.port))

    @property
    def host(self) -> str:
        return str(self.options.get("host", "localhost"))

    @property
    def port(self) -> int:
        return int(self.options.get("port", 6379))

    @property
    def db(self) -> int:
        return int(self.options.get("db", 0) or 0)

    @property
    def client_name(self) -> str | None:
        name: str | None = self.options.get("client_name")
        return name

    @property
    def pushes(self) -> bool:
        """Its connections may speak version 3 of the protocol."""
        return self.options.get("protocol") != 2

    @property
    def secured(self) -> bool:
        return "SSL" in self.kind

    def at(self, host: str, port: int) -> Server:
        """Another server, reached in the same way."""
        return replace(self, options={**self.options, "host": host, "port": port})

    def endpoint(self, tls: object | None) -> Endpoint:
        if path := self.options.get("path"):
            return Endpoint("", 0, str(path))
        keepalive = self.options.get("socket_keepalive_options")  # redis-py has a mark of its own for "none given"
        options = tuple(keepalive.items()) if isinstance(keepalive, Mapping) else ()
        return Endpoint(self.host, self.port, tls=tls, keepalive_options=options)

    def credentials(self) -> Sequence[str]:
        """What AUTH is to say, unless a provider is to be asked."""
        password = self.options.get("password")
        if password is None:
            return ()
        username = self.options.get("username")
        return (password,) if username is None else (username, password)

    @property
    def provider(self) -> Callable[[], Sequence[str]] | None:
        """Code of the user's that gives the credentials, and may block."""
        provider = self.options.get("credential_provider")
        return None if provider is None else provider.get_credentials

    def tls_context(self) -> ssl.SSLContext:
        """From the files as they are now, for certificates are replaced. Blocks."""
        said = self.build()  # redis-py has read the options
        context = ssl.create_default_context()
        context.check_hostname = said.check_hostname
        context.verify_mode = said.cert_reqs
        for flag in getattr(said, "ssl_include_verify_flags", None) or ():
            context.verify_flags |= flag
        for flag in getattr(said, "ssl_exclude_verify_flags", None) or ():
            context.verify_flags &= ~flag
        try:
            if said.certfile or said.keyfile:
                context.load_cert_chain(said.certfile, said.keyfile, said.certificate_password)
            if said.ca_certs is not None or said.ca_path is not None or said.ca_data is not None:
                context.load_verify_locations(said.ca_certs, said.ca_path, said.ca_data)
        except FileNotFoundError as error:  # it names none
            files = (said.certfile, said.keyfile, said.ca_certs, said.ca_path)
            named = ", ".join(str(file) for file in files if file)
            raise FileNotFoundError(error.errno, "a certificate file is not there", named) from error
        if said.ssl_min_version is not None:
            context.minimum_version = said.ssl_min_version
        if said.ssl_ciphers:
            context.set_ciphers(said.ssl_ciphers)
        return context

    def build(self) -> Any:
        """redis-py's connection, not connected: for what it makes of the options, and its complaints about them."""
        redis = need_redis_py()
        if any(self.options.get(name) for name in OCSP):
            raise Misconfigured(
                f"{self.place}: certificates are not checked by OCSP here; leave {' and '.join(OCSP)} out"
            )
        try:
            return getattr(redis.connection, self.kind)(**self.options)
        except (TypeError, ValueError, redis.RedisError) as error:
            raise Misconfigured(f"the settings for Redis at {self.place} are not valid: {error}") from error


@dataclass(frozen=True, slots=True)
class SentinelService:
    """The primary of a service that sentinels watch: they are asked for it anew with every connection."""

    service: str
    sentinels: tuple[Server, ...]
    server: Server

    @property
    def place(self) -> str:
        return f"{self.service!r} of the sentinels at {', '.join(each.place for each in self.sentinels)}"

    @property
    def pushes(self) -> bool:
        return self.server.pushes
