"""The alerts: Prometheus takes them, each fires when it should and is quiet when it should be, and has its page."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.errors import Misconfigured
from holdfast.observe.engine_view import METRICS as ENGINE_METRICS
from holdfast.observe.metric_table import METRICS, PROCESS_METRICS
from holdfast.observe.rules import rules
from holdfast.refusals.collector import METRICS as FENCE_METRICS
from tests.cli.harness import HOLDFAST, LONG
from tests.observe.alert_cases import CASES

ROOT = Path(__file__).parents[2]
ALERTS = [rule for group in yaml.safe_load(rules())["groups"] for rule in group["rules"]]


def promtool(*words: str) -> str:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=LONG * 3, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fires(folder: Path, alert: str, series: dict[str, str]) -> bool:
    """Whether an alert fires after 20 minutes of these series."""
    (folder / "rules.yml").write_text(rules())
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": "20m", "alertname": alert, "exp_alerts": []}],
    }
    (folder / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(folder / "test.yml")],
        capture_output=True,
        text=True,
        timeout=LONG * 3,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "SUCCESS" in said or f"alertname: {alert}" in said, said
    return "SUCCESS" not in said


def test_prometheus_takes_them(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules())
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", str(tmp_path / "rules.yml"))


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should_and_only_then(alert: str, tmp_path: Path) -> None:
    bad, good = CASES[alert]
    assert fires(tmp_path, alert, bad)
    assert not fires(tmp_path, alert, good)


FENCE = '{fence="redis://a",kind="redis",family="orders/*"}'
LAST, COUNT = f"holdfast_fence_last_refusal_timestamp_seconds{FENCE}", f"holdfast_fence_refusals_total{FENCE}"


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ({LAST: "_x18 1100 1100 1100", COUNT: "_x18 1 1 1"}, True),  # the first one that the fence has ever refused
        ({LAST: "60x18 1100 1100 1100", COUNT: "3x18 4 4 4"}, True),
        ({COUNT: "3x18 4 4 4"}, True),  # whatever the clock of the fence says
        ({LAST: "_x18 60 60 60", COUNT: "_x18 3 3 3"}, False),  # an exporter was started; they are old
        ({LAST: "60x30", COUNT: "3x30"}, False),
    ],
)
def test_a_refusal_that_was_kept_fires_when_it_is_new(series: dict[str, str], expected: bool, tmp_path: Path) -> None:
    """The process that was refused is gone: nobody counts but the fence."""
    assert fires(tmp_path, "HoldfastFenceRefused", series) is expected


def test_every_alert_has_cases_and_a_page() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert sorted(names) == sorted(CASES)
    for rule in ALERTS:
        page = ROOT / rule["annotations"]["runbook"]
        text = page.read_text("utf-8")
        assert page.stem == rule["alert"]
        for heading in ("## What it means", "## What to look at", "## What to do", "## Rehearse it"):
            assert heading in text, f"{page.name} has no {heading!r}"


def test_rules_ask_for_metrics_that_there_are() -> None:
    import re

    exported = {metric.name for metric in (*METRICS, *PROCESS_METRICS)} | set(FENCE_METRICS)
    exported |= {f"holdfast_engine_{name}" for name in ENGINE_METRICS}
    asked = {name for rule in ALERTS for name in re.findall(r"holdfast_\w+", rule["expr"])}
    assert {name.removesuffix("_total").removesuffix("_bucket") for name in asked} <= exported


@pytest.mark.parametrize("window", ["", "5", "5 m", "0s", "-1m", "5m] or vector(1) or x[1m"])
def test_a_window_that_is_none_is_refused(window: str) -> None:
    with pytest.raises(Misconfigured, match="window"):
        rules(window=window)


def test_the_command_prints_them() -> None:
    words = [HOLDFAST, "rules", "--window", "10m", "--pending", "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG * 3, check=True)
    assert yaml.safe_load(done.stdout)["groups"][0]["rules"][0]["alert"] == "HoldfastFenceRefused"
    assert "WINDOW" not in done.stdout
    assert "PENDING" not in done.stdout


def test_the_board_shows_every_metric_or_is_said_not_to() -> None:
    import json
    import re

    done = subprocess.run([HOLDFAST, "board"], capture_output=True, text=True, timeout=LONG * 3, check=True)
    queries = [target["expr"] for panel in json.loads(done.stdout)["panels"] for target in panel["targets"]]
    shown = {name for query in queries for name in re.findall(r"holdfast_\w+?(?=_total|_bucket|[{\[)])", query)}
    exported = {metric.name for metric in (*METRICS, *PROCESS_METRICS)}
    left_out = {"released", "unreleased", "dropped", "recovered", "asked", "reconnections"}
    assert exported - shown == {f"holdfast_{name}" for name in left_out}


def test_the_page_for_operators_makes_a_config_that_prometheus_takes(tmp_path: Path) -> None:
    import re

    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    commands = re.findall(r"^\$ ((?:holdfast (?:rules|board)|printf) .*)$", page, re.MULTILINE)
    assert len(commands) == 3
    environment = {"PATH": f"{Path(HOLDFAST).parent}:/usr/bin:/bin"}
    for command in commands:
        subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, timeout=LONG * 3, check=True)
    said = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert f"{len(ALERTS)} rules found" in said
    assert (tmp_path / "holdfast-board.json").stat().st_size > 1000
