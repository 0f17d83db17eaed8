"""`holdfast console`: what the engine says, in a browser.

1. It listens at loopback, and only reads. Listening elsewhere needs a secret, writing needs `--allow-write` and a
   secret: each is refused at once without it.
2. The secret comes from a file or from the environment, never from the command line, which every user can see.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import connect
from ..errors import Misconfigured
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import SECONDS, engine_options, listen_address, quiet_option

if TYPE_CHECKING:
    from ..console.guard import Policy

LISTEN = "127.0.0.1:8484"
SECRET_VARIABLE = "HOLDFAST_CONSOLE_SECRET"
POLL_S = 0.5
READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("prefix", default="")
@click.option("--listen", default=LISTEN, show_default=True, metavar="HOST:PORT", help="Where browsers ask.")
@click.option("--interval", type=SECONDS, default=2.0, show_default=True, help="Survey no more often than this.")
@click.option("--allow-write", is_flag=True, help="Let those who know the secret evict and ask.")
@click.option("--secret-file", type=READABLE, help=f"A file with the secret.  [default: ${SECRET_VARIABLE}]")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that the console is known by; repeatable.")
@click.option("--metrics", multiple=True, metavar="URL", help="A program's page for Prometheus; repeatable.")
@click.option("--fence", "fences", multiple=True, metavar="FENCE", help="Where refusals are kept; repeatable.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=RATE", help="A rate limit to watch; repeatable.")
@click.option("--certificate", type=READABLE, help="For https: a PEM file.")
@click.option("--key", type=READABLE, help="Its key, if that is in another file.")
@engine_options
@quiet_option
def console(
    prefix: str,
    listen: str,
    interval: float,
    allow_write: bool,
    secret_file: Path | None,
    allow_host: tuple[str, ...],
    metrics: tuple[str, ...],
    fences: tuple[str, ...],
    limits: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
    url: str | None,
    namespace: str,
    quiet: bool,
) -> None:
    """Show the locks whose name begins with PREFIX in a browser, live, until Ctrl-C.

    It listens at this machine only, and only reads. To let others look, give it a secret and --listen; to evict or ask
    from the page, also --allow-write. What it shows is also there as JSON: see docs/console.md.

    \b
    Examples:
      holdfast console
      holdfast console --url redis://127.0.0.1 --metrics http://127.0.0.1:9464/metrics
      holdfast console --allow-write --secret-file console.secret
    """
    try:
        from ..console.server import serving
    except ImportError as error:
        raise Misconfigured(
            "'holdfast console' needs starlette and uvicorn; pip install 'holdfast[console]'"
        ) from error
    from ..console.service import service_for

    host, port = listen_address(listen, LISTEN)
    policy = _policy(host, _secret(secret_file), allow_host, allow_write)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    locks = coordinator_for_viewing(url, namespace, quiet) or connect(chosen_url(url), namespace=namespace)
    with locks, _listening(host, port, listen) as server_socket:
        service = service_for(
            locks, chosen_url(url), namespace, prefix,
            interval=interval, writable=allow_write, metrics=metrics, limits=limits, fences=fences,
        )  # fmt: skip
        with serving(service, policy, server_socket, certificate, key) as thread:
            if not quiet:
                _announce(server_socket, host, certificate is not None)
            while thread.is_alive() and not over.wait(POLL_S):
                pass


def _secret(file: Path | None) -> str:
    if file is None:
        return os.environ.get(SECRET_VARIABLE, "").strip()
    secret = file.read_text("utf-8").strip()
    if not secret:
        raise Misconfigured(f"the secret file {str(file)!r} is empty")
    return secret


def _policy(host: str, secret: str, names: tuple[str, ...], writable: bool) -> Policy:
    """Rule 1."""
    from ..console.guard import Policy, is_loopback
    from ..console.sessions import ConsoleSessions

    how = f"put one into a file (--secret-file) or into ${SECRET_VARIABLE}"
    if not is_loopback(host) and not secret:
        raise Misconfigured(f"--listen {host} lets other machines ask, and there is no secret; {how}")
    if writable and not secret:
        raise Misconfigured(f"--allow-write needs a secret; {how}")
    return Policy(ConsoleSessions(secret), frozenset(name.lower() for name in (host, *names)), writable)


def _listening(host: str, port: int, listen: str) -> socket.socket:
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise Misconfigured(f"nobody can listen at {listen}: {error.strerror}; choose another --listen") from error


def _announce(server_socket: socket.socket, host: str, tls: bool) -> None:
    from ..console.guard import is_loopback

    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if tls else "http"
    click.echo(f"the console is at {scheme}://{shown}:{server_socket.getsockname()[1]}/, until Ctrl-C", err=True)
    if not is_loopback(host) and not tls:
        click.echo("holdfast: the secret travels unencrypted; give a --certificate, or put TLS in front", err=True)
