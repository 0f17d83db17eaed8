"""A real Prometheus scrapes a real program that does what alerts are about: each fires, each chart shows something."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from holdfast.observe.board import CHARTS
from holdfast.observe.rules import rules
from holdfast.torture.sandbox.loopback import free_port
from tests.cli.harness import HOLDFAST
from tests.observe.alert_cases import CASES

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0


@contextmanager
def running(*words: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def ask(port: int, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:  # it has not begun yet
        return None


def firing(port: int) -> set[str]:
    found = ask(port, "/api/v1/alerts") or {"alerts": []}
    return {alert["labels"]["alertname"] for alert in found["alerts"] if alert["state"] == "firing"}


def answers(port: int, query: str) -> bool:
    """Whether a query of the board shows anything; it is asked as Grafana asks it, with the variables filled in."""
    for name, value in (("$engine", ".*"), ("$family", ".*"), ("$__rate_interval", "20s")):
        query = query.replace(name, value)
    said = ask(port, f"/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    return bool(said and said["result"])


def prometheus(folder: Path, scraped: int, server: int, window: str) -> list[str]:
    """The command of a Prometheus that scrapes one port, with our rules."""
    (folder / "rules.yml").write_text(rules(window=window, pending="0s"))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yml")],
        "scrape_configs": [{"job_name": "rehearsal", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    listen = f"--web.listen-address=127.0.0.1:{server}"
    return ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", listen]


ZOMBIE = """
import os, signal, sqlite3, sys
from holdfast.errors import FenceRejected
from holdfast.fenced import SQLiteFence
with sqlite3.connect(sys.argv[1], isolation_level=None) as shop:
    with SQLiteFence(shop).transaction("account", 34):
        pass
    shop.execute("BEGIN IMMEDIATE")
    try:
        SQLiteFence(shop).claim("account", 33)
    except FenceRejected:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_zombie_that_is_killed_right_after_its_refusal_raises_the_alert(tmp_path: Path) -> None:
    """Nobody scraped it, and it exported nothing: what fires is what its fence has kept."""
    exporter, server = free_port(), free_port()
    of = ("--url", f"sqlite://{tmp_path}/locks.db", "--fence", f"sqlite://{tmp_path}/shop.db")
    show = (HOLDFAST, "exporter", *of, "--listen", f"127.0.0.1:{exporter}", "--interval", "0")
    words = prometheus(tmp_path, exporter, server, "10m")
    with running(*show, folder=tmp_path), running(*words, folder=tmp_path):
        up = f"/api/v1/query?{urllib.parse.urlencode({'query': 'count(holdfast_fence_up == 1) == 2'})}"
        end = time.monotonic() + PATIENCE_S
        while not (ask(server, up) or {"result": []})["result"] and time.monotonic() < end:
            time.sleep(0.2)
        assert firing(server) == set()
        zombie = subprocess.run([sys.executable, "-c", ZOMBIE, f"{tmp_path}/shop.db"], timeout=PATIENCE_S, check=False)
        assert zombie.returncode == -signal.SIGKILL
        while not (seen := firing(server)) and time.monotonic() < end:
            time.sleep(0.2)
        assert seen == {"HoldfastFenceRefused"}, (tmp_path / "log").read_text()[-3000:]


def test_each_alert_fires_and_each_panel_shows_something(tmp_path: Path) -> None:
    program, server = free_port(), free_port()
    words = prometheus(tmp_path, program, server, "20s")
    with (
        running(sys.executable, "-m", "tests.observe.rehearsal", str(program), folder=tmp_path),
        running(*words, folder=tmp_path),
    ):
        seen, empty = set[str](), [chart.title for chart in CHARTS]
        end = time.monotonic() + PATIENCE_S
        while (empty or not seen >= set(CASES)) and time.monotonic() < end:
            time.sleep(0.5)
            seen |= firing(server)
            empty = [chart.title for chart in CHARTS if chart.title in empty and not answers(server, chart.query)]
        assert seen == set(CASES), f"not fired: {set(CASES) - seen}; {(tmp_path / 'log').read_text()[-3000:]}"
        assert empty == [], "charts of the board that show nothing"
