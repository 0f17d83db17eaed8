"""Engines by URL scheme. Ours are in the table; others join through the entry-point group `holdfast.backends`.

An entry point names a callable `(url: str, namespace: str, request_timeout: float) -> Engine`. Nothing of an engine
is imported before its scheme is asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ..errors import Misconfigured
from ..ports import AnyEngine

SCHEMES = {
    "memory": "holdfast.backends.memory.engine",
    "sqlite": "holdfast.backends.sqlite.engine",
    **dict.fromkeys(
        ("redis", "rediss", "unix", "redis+unix", "redis+sentinel", "redis+cluster"),
        "holdfast.backends.redis.engine",
    ),
    **dict.fromkeys(("etcd", "etcds"), "holdfast.backends.etcd.engine"),
    "redlock": "holdfast.backends.redlock.engine",
    **dict.fromkeys(("zookeeper", "zookeepers"), "holdfast.backends.zookeeper.engine"),
    **dict.fromkeys(("postgresql", "postgres"), "holdfast.backends.postgresql.engine"),
    **dict.fromkeys(("postgresql+session", "postgres+session"), "holdfast.backends.postgresql.session.engine"),
    **dict.fromkeys(("mysql", "mariadb"), "holdfast.backends.mysql.engine"),
    **dict.fromkeys(("mysql+session", "mariadb+session"), "holdfast.backends.mysql.session.engine"),
}


CLIENTS = {"redis": "holdfast.backends.redis.engine", "kazoo": "holdfast.backends.zookeeper.engine"}
"""Engines that take a client of the user's own, by the package that the client's class comes from."""


def open_engine(url: object, namespace: str, request_timeout: float) -> AnyEngine:
    """The engine of a URL, or of a client in its place; `Misconfigured` for what nobody has."""
    if not isinstance(url, str):
        return _of_client(url, namespace, request_timeout)
    scheme, separator, _ = url.partition("://")
    if not separator:
        login, at, rest = url.rpartition("@")  # what stands before an @ may be a password
        shown = "…@" + rest if at else login + rest
        raise Misconfigured(f"{shown!r} is not a URL; it should begin with a scheme, as in sqlite:///path/to/file")
    if scheme in SCHEMES:
        engine: AnyEngine = import_module(SCHEMES[scheme]).open_engine(url, namespace, request_timeout)
        return engine
    plugins = entry_points(group="holdfast.backends")
    for plugin in plugins:
        if plugin.name == scheme:
            engine = plugin.load()(url, namespace, request_timeout)
            return engine
    known = sorted({*SCHEMES, *plugins.names})
    raise Misconfigured(
        f"no engine has the scheme {scheme[:40]!r}{_alike(scheme, known)}; there are: {', '.join(known)}"
    )


def _alike(scheme: str, known: list[str]) -> str:
    """A hint for a slip of the finger."""
    from difflib import get_close_matches  # not at the top: `import holdfast` stays light

    return "".join(f", did you mean {match}://?" for match in get_close_matches(scheme.lower(), known, n=1))


def _of_client(client: object, namespace: str, request_timeout: float) -> AnyEngine:
    for base in type(client).__mro__:
        if (module := CLIENTS.get(base.__module__.partition(".")[0])) is not None:
            engine: AnyEngine = import_module(module).open_engine(client, namespace, request_timeout)
            return engine
    raise Misconfigured(
        f"connect() takes a URL, as in sqlite:///path/to/file, or a client of {', '.join(CLIENTS)}, not {client!r}"
    )
