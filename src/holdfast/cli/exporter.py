"""`holdfast exporter`: what the engine shows, for Prometheus."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from .. import connect
from ..clock import now
from ..errors import Misconfigured
from ..settings import without_passwords
from .engine_choice import announce_default_engine, chosen_url
from .options import SECONDS, engine_options, listen_address, quiet_option

if TYPE_CHECKING:
    from ..refusals.collector import FenceCollector

LISTEN = "127.0.0.1:9464"


@click.command()
@click.argument("prefix", default="")
@click.option("--listen", default=LISTEN, show_default=True, metavar="HOST:PORT", help="Where Prometheus asks.")
@click.option(
    "--interval", type=SECONDS, default=5.0, show_default=True, help="Ask the engine no more often than this."
)
@click.option(
    "--fence",
    "fences",
    multiple=True,
    metavar="URL|PATH",
    help="Also what was refused by this fence, as for 'holdfast refusals'. May be given several times.",
)
@engine_options
@quiet_option
def exporter(
    prefix: str, listen: str, interval: float, fences: tuple[str, ...], url: str | None, namespace: str, quiet: bool
) -> None:
    """Export what the engine shows of locks whose name begins with PREFIX: held, waiting, and for how long.

    And what fences have refused, at the engine itself and at every --fence: also to processes that were killed since.
    For programs that cannot be changed. A program that can be exports more, and for less: see docs/metrics.md.

    \b
    Examples:
      holdfast exporter --url redis://127.0.0.1
      holdfast exporter --listen 127.0.0.1:9999 --interval 30s orders/
      holdfast exporter --url redis://127.0.0.1 --fence postgresql://shop@db/shop --fence /srv/ledgers/
    """
    host, port = listen_address(listen, LISTEN)
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise Misconfigured(
            "'holdfast exporter' needs prometheus-client; pip install 'holdfast[prometheus]'"
        ) from error
    from ..observe.engine_view import EngineCollector
    from ..refusals.collector import FenceCollectors

    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    announce_default_engine(url, quiet)
    chosen = chosen_url(url)
    fence_collectors = [_fence_collector(fence, interval) for fence in dict.fromkeys((*_own_fence(chosen), *fences))]
    with connect(chosen, namespace=namespace) as locks:
        registry = CollectorRegistry()
        registry.register(EngineCollector(without_passwords(chosen), lambda: locks.survey(prefix), now, interval))
        registry.register(FenceCollectors(fence_collectors))
        try:
            server, _ = start_http_server(port, host, registry)
        except OSError as error:
            raise Misconfigured(f"nobody can listen at {listen}: {error.strerror}; choose another --listen") from error
        if not quiet:
            shown = f"[{host}]" if ":" in host else host
            click.echo(f"metrics at http://{shown}:{server.server_port}/metrics, until Ctrl-C", err=True)
        over.wait()
        server.shutdown()


def _own_fence(url: str) -> tuple[str, ...]:
    """The engine as a fence: nothing, if none can stand there."""
    from ..refusals.fence_view import kind_of

    try:
        return (url,) if kind_of(url) else ()
    except Misconfigured:
        return ()


def _fence_collector(fence: str, interval: float) -> FenceCollector:
    from ..refusals.collector import FenceCollector
    from ..refusals.fence_view import kind_of, read_refusals

    return FenceCollector(without_passwords(fence), kind_of(fence), lambda: read_refusals(fence), now, interval)
