"""`holdfast exporter`: what the engine shows, for Prometheus."""

from __future__ import annotations

import signal
import threading

import click

from .. import connect
from ..clock import now
from ..errors import Misconfigured
from ..settings import without_passwords
from .engine_choice import announce_default_engine, chosen_url
from .options import SECONDS, engine_options, quiet_option

LISTEN = "127.0.0.1:9464"


@click.command()
@click.argument("prefix", default="")
@click.option("--listen", default=LISTEN, show_default=True, metavar="HOST:PORT", help="Where Prometheus asks.")
@click.option(
    "--interval", type=SECONDS, default=5.0, show_default=True, help="Ask the engine no more often than this."
)
@engine_options
@quiet_option
def exporter(prefix: str, listen: str, interval: float, url: str | None, namespace: str, quiet: bool) -> None:
    """Export what the engine shows of locks whose name begins with PREFIX: held, waiting, and for how long.

    For programs that cannot be changed. A program that can be exports more, and for less: see docs/metrics.md.

    \b
    Examples:
      holdfast exporter --url redis://127.0.0.1
      holdfast exporter --listen 127.0.0.1:9999 --interval 30s orders/
    """
    host, port = _address(listen)
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise Misconfigured(
            "'holdfast exporter' needs prometheus-client; pip install 'holdfast[prometheus]'"
        ) from error
    from ..observe.engine_view import EngineCollector

    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    announce_default_engine(url, quiet)
    chosen = chosen_url(url)
    with connect(chosen, namespace=namespace) as locks:
        registry = CollectorRegistry()
        registry.register(EngineCollector(without_passwords(chosen), lambda: locks.survey(prefix), now, interval))
        try:
            server, _ = start_http_server(port, host, registry)
        except OSError as error:
            raise Misconfigured(f"nobody can listen at {listen}: {error.strerror}; choose another --listen") from error
        if not quiet:
            shown = f"[{host}]" if ":" in host else host
            click.echo(f"metrics at http://{shown}:{server.server_port}/metrics, until Ctrl-C", err=True)
        over.wait()
        server.shutdown()


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise Misconfigured(f"--listen is {listen!r}; give a host and a port, as in {LISTEN}")
    return host.strip("[]"), int(port)
