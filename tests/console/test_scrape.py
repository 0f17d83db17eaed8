"""What programs count is read back from their pages, and judged as they judge it themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import holdfast
from holdfast.console.scrape import ScrapedMetrics, check_addresses, scrape
from holdfast.errors import Misconfigured
from holdfast.observe.metric_table import METRICS, PROCESS_METRICS
from holdfast.observe.process import process_stats
from holdfast.observe.prometheus import export
from tests.cli.harness import eventually
from tests.console.served import served

NAME = holdfast.Name("scraped/{id}", id=7)


def gives_up(locks: holdfast.Coordinator) -> None:
    with pytest.raises(holdfast.NotAcquired):
        locks.lock(NAME, timeout=0.01).acquire()


@pytest.fixture(scope="module")
def text() -> str:
    """The page of this process, after some contention: one who waits, one who gives up."""
    registry = CollectorRegistry()
    export(registry)
    with holdfast.connect("memory://console-scrape") as locks:
        with locks.lock(NAME, ttl=30):
            patient = threading.Thread(target=gives_up, args=(locks,))
            patient.start()
            patient.join()
            other = threading.Thread(target=lambda: locks.lock(NAME, timeout=20).acquire().release())
            other.start()
            eventually(lambda: bool(locks.survey("scraped/7")[0].waiters))
        other.join()
        return str(generate_latest(registry), "utf-8")


def test_what_was_counted_comes_back_with_the_same_verdicts(text: str) -> None:
    found = ScrapedMetrics()
    found.read(text)
    mine, its = process_stats()["memory"].families["scraped/{id}"], found.families["scraped/{id}"]
    assert (its.acquired, its.waited, its.timed_out) == (mine.acquired, mine.waited, mine.timed_out) == (2, 1, 1)
    assert its.verdicts == mine.verdicts
    assert its.wait_ratio.counts == mine.wait_ratio.counts
    assert [verdict.rule for verdict in found.verdicts][-1] == "refusals"


def test_two_pages_are_added(text: str) -> None:
    found = ScrapedMetrics()
    found.read(text)
    found.read(text)
    assert found.families["scraped/{id}"].acquired == 4
    assert found.families["scraped/{id}"].wait_ratio.count == 4


def test_refusals_are_counted_from_the_page() -> None:
    found = ScrapedMetrics()
    found.read('# TYPE holdfast_refusals_total counter\nholdfast_refusals_total{kind="file"} 3.0\n')
    assert (found.verdicts[-1].value, found.verdicts[-1].ok) == (3, False)


def test_the_names_are_those_of_the_table() -> None:
    from holdfast.console import scrape as module

    known = {metric.name for metric in (*METRICS, *PROCESS_METRICS)}
    assert {*module.COUNTS, *module.RATIO_HISTOGRAMS, "holdfast_acquisitions", "holdfast_losses"} <= known


def test_buckets_of_another_version_are_left_out() -> None:
    found = ScrapedMetrics()
    found.read(
        "# TYPE holdfast_wait_ttl_ratio histogram\n"
        'holdfast_wait_ttl_ratio_bucket{family="x",le="0.123"} 1.0\n'
        'holdfast_wait_ttl_ratio_bucket{family="x",le="+Inf"} 1.0\n'
    )
    assert found.families.get("x") is None or found.families["x"].wait_ratio.count == 0


@pytest.fixture
def page(text: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()
        thread.join()


def test_a_page_that_is_away_is_told_without_its_password_and_the_others_count(page: str) -> None:
    found = scrape([page, "http://admin:hunter2@127.0.0.1:1/metrics"])
    assert found.families["scraped/{id}"].acquired == 2
    assert list(found.problems) == ["http://admin:…@127.0.0.1:1/metrics"]
    assert "hunter2" not in str(found)


def test_the_console_shows_it(page: str) -> None:
    with holdfast.connect("memory://console-scrape") as locks:
        with served(locks, "memory://console-scrape", metrics=(page,)) as console:
            eventually(lambda: console.get("/api/metrics").json["programs"] is not None)
            programs = console.get("/api/metrics").json["programs"]
    assert programs["sources"] == [page]
    assert [verdict["rule"] for verdict in programs["verdicts"]][-1] == "refusals"
    (family,) = (each for each in programs["families"] if each["family"] == "scraped/{id}")
    assert {verdict["rule"]: verdict["ok"] for verdict in family["verdicts"]}["timeouts"] is False


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(Misconfigured, match="http://HOST:PORT"):
        check_addresses(["file:///etc/passwd"])
