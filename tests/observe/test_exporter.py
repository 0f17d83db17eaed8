"""`holdfast exporter`: what Prometheus is shown is what the engine says, and asking often costs little."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import holdfast
from holdfast.errors import BackendUnavailable
from holdfast.model import LockView
from holdfast.observe.engine_view import EngineCollector, by_family
from holdfast.observe.families import MAX_FAMILIES_COUNT
from tests.cli.harness import HOLDFAST, LONG


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=LONG) as answer:
        text: str = answer.read().decode()
        return text


def test_the_page_shows_what_the_engine_says(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    with holdfast.connect(url) as locks, locks.lock("orders/7"), locks.lock("orders/8"), locks.lock("nightly"):
        other = holdfast.connect(url)
        lost = other.lock("stock/5", recover=lambda lease, predecessor: None).acquire()
        assert locks.evict("stock/5", lost.token)
        waiter = threading.Thread(target=lambda: other.lock("nightly", timeout=60).acquire().release(), daemon=True)
        waiter.start()
        while not any(view.waiters for view in locks.survey("nightly")):
            pass
        words = [HOLDFAST, "exporter", "--url", url, "--listen", "127.0.0.1:0", "--interval", "0"]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+/metrics", process.stderr.readline())
            assert found is not None
            text = page(found[0])
            assert f'holdfast_engine_held{{engine="{url}",family="orders/*"}} 2.0' in text
            assert f'holdfast_engine_waiting{{engine="{url}",family="nightly"}} 1.0' in text
            assert f'holdfast_engine_up{{engine="{url}"}} 1.0' in text
            assert f'holdfast_engine_unrecovered{{engine="{url}",family="stock/*"}} 1.0' in text
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG) == 0
            process.communicate()
    waiter.join(LONG)
    other.close()


def shown(collector: EngineCollector) -> str:
    registry = CollectorRegistry()
    registry.register(collector)
    return str(generate_latest(registry), "utf-8")


def test_an_engine_that_does_not_answer_is_a_figure() -> None:
    def survey() -> list[LockView]:
        raise BackendUnavailable("it is away")

    assert 'holdfast_engine_up{engine="redis://a"} 0.0' in shown(EngineCollector("redis://a", survey, lambda: 0.0, 5.0))


def test_the_engine_is_not_asked_more_often_than_the_interval() -> None:
    asked: list[float] = []
    time = [0.0]

    def survey() -> list[LockView]:
        asked.append(time[0])
        return []

    collector = EngineCollector("redis://a", survey, lambda: time[0], 5.0)
    for moment in (0.0, 1.0, 4.9, 5.0, 6.0, 10.0):
        time[0] = moment
        list(collector.collect())
    assert asked == [0.0, 5.0, 10.0]


def test_families_are_bounded() -> None:
    views = [LockView(f"{chr(97 + number % 26)}x{number}y", 1, (), ()) for number in range(MAX_FAMILIES_COUNT + 50)]
    found = by_family(views)
    assert len(found) == MAX_FAMILIES_COUNT + 1
    assert found["other"].names == 50


@pytest.mark.parametrize("listen", ["9464", ":9464", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    words = [HOLDFAST, "exporter", "--url", "memory://", "--listen", listen]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG * 3, check=False)
    assert (done.returncode, "--listen" in done.stderr) == (64, True)
