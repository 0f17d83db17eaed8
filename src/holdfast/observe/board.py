"""A board for Grafana, as the JSON that it imports: the five figures with their limits, then what stands behind them.

1. Every chart is a line of `CHARTS`; a limit is drawn where the verdicts and the alerts have one.
2. The data source is asked for when the board is imported (`${DS_PROMETHEUS}`), and engines and families are chosen
   by variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FOR = 'engine=~"$engine",family=~"$family"'
ENGINE = 'engine=~"$engine"'
RATE = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Chart:
    """`limit` is drawn as a line; `below`: what is below it is bad, not above."""

    title: str
    query: str
    legend: str
    unit: str = "short"
    limit: float | None = None
    below: bool = False
    help: str = ""


def _quantile(part: float, metric: str, by: str = "family", where: str = FOR) -> str:
    return f"histogram_quantile({part}, sum by ({by}, le) (rate({metric}_bucket{{{where}}}{RATE})))"


def _share(some: str, of: str) -> str:
    part, whole = (
        f'sum by (family) (rate(holdfast_acquisitions_total{{{FOR},outcome=~"{x}"}}{RATE}))' for x in (some, of)
    )
    return f"{part} / {whole}"


ANSWERED = "at_once|waited|timed_out|not_free|deadlocks"
CHARTS: tuple[Chart, ...] = (
    Chart("Waiting, of the ttl (p99)", _quantile(0.99, "holdfast_wait_ttl_ratio"), "{{family}}", "percentunit", 0.5),
    Chart(
        "Not granted at once", _share("waited|timed_out|not_free|deadlocks", ANSWERED), "{{family}}", "percentunit", 0.3
    ),
    Chart(
        "Held, of the ttl, without renewal (p99)",
        _quantile(0.99, "holdfast_hold_ttl_ratio"),
        "{{family}}",
        "percentunit",
        0.8,
    ),
    Chart(
        "Left of the ttl at renewal (p1)",
        _quantile(0.01, "holdfast_left_ttl_ratio"),
        "{{family}}",
        "percentunit",
        0.2,
        True,
    ),
    Chart("Gave up waiting", _share("timed_out", "at_once|waited|timed_out"), "{{family}}", "percentunit", 0.05),
    Chart(
        "Refused at fences",
        f"sum by (kind) (increase(holdfast_refusals_total{RATE}))",
        "{{kind}}",
        limit=0.0,
        help="Above nothing: a holder without its lock was at work. See docs/runbooks/HoldfastFenceRefused.md.",
    ),
    Chart(
        "Refused attempts of once and actors",
        f"sum by (family) (increase(holdfast_attempts_refused_total{{{FOR}}}{RATE}))",
        "{{family}}",
        limit=0.0,
    ),
    Chart(
        "Leases lost",
        f"sum by (family, reason) (increase(holdfast_losses_total{{{FOR}}}{RATE}))",
        "{{family}} {{reason}}",
        limit=0.0,
    ),
    Chart(
        "Recoveries",
        f"sum by (family) (increase(holdfast_recoveries_total{{{FOR}}}{RATE}))",
        "{{family}}",
        help="Holders that put right what one before them left, who did not end cleanly.",
    ),
    Chart(
        "Recoveries that failed",
        f"sum by (family) (increase(holdfast_recoveries_failed_total{{{FOR}}}{RATE}))",
        "{{family}}",
        limit=0.0,
        help="Above nothing: a name is left unrecovered. See docs/runbooks/HoldfastUnrecovered.md.",
    ),
    Chart("Held now", f"sum by (family) (holdfast_held{{{FOR}}})", "{{family}}"),
    Chart("Waiting now", f"sum by (family) (holdfast_waiting{{{FOR}}})", "{{family}}"),
    Chart(
        "How asking ended", f"sum by (outcome) (rate(holdfast_acquisitions_total{{{FOR}}}{RATE}))", "{{outcome}}", "ops"
    ),
    Chart("Time until granted (p99)", _quantile(0.99, "holdfast_wait_seconds"), "{{family}}", "s"),
    Chart("Time held (p99)", _quantile(0.99, "holdfast_hold_seconds"), "{{family}}", "s"),
    Chart("Held, of max_hold (p99)", _quantile(0.99, "holdfast_hold_max_ratio"), "{{family}}", "percentunit", 0.8),
    Chart("Renewals", f"sum by (family) (rate(holdfast_renewals_total{{{FOR}}}{RATE}))", "{{family}}", "ops"),
    Chart("Jeopardy", f"sum by (family) (increase(holdfast_jeopardy_total{{{FOR}}}{RATE}))", "{{family}}"),
    Chart("Requests (p99)", _quantile(0.99, "holdfast_request_seconds", "verb", ENGINE), "{{verb}}", "s"),
    Chart(
        "How late renewals begin (p99)",
        _quantile(0.99, "holdfast_keeper_lag_seconds", "engine", ENGINE),
        "{{engine}}",
        "s",
    ),
    Chart(
        "The engine answers", f"min by (engine) (holdfast_reachable{{{ENGINE}}})", "{{engine}}", limit=1.0, below=True
    ),
    Chart("Leader changes", f"sum by (family) (increase(holdfast_elected_total{{{FOR}}}{RATE}))", "{{family}}"),
)
WIDTH, HEIGHT, COLUMNS = 8, 8, 3


def board() -> dict[str, Any]:
    """The board, ready for `json.dumps`.

    >>> [variable["name"] for variable in board()["templating"]["list"]]
    ['engine', 'family']
    """
    return {
        "__inputs": [{"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"}],
        "title": "holdfast: locks",
        "uid": "holdfast-locks",
        "tags": ["holdfast", "locks"],
        "schemaVersion": 38,
        "version": 1,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [_variable("engine"), _variable("family")]},
        "panels": [_chart(number, chart) for number, chart in enumerate(CHARTS)],
    }


def _variable(label: str) -> dict[str, Any]:
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": "${DS_PROMETHEUS}",
        "query": f"label_values(holdfast_held, {label})",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _chart(number: int, chart: Chart) -> dict[str, Any]:
    good, bad = ("red", "green") if chart.below else ("green", "red")
    steps: list[dict[str, Any]] = [{"color": good if chart.limit is not None else "green", "value": None}]
    if chart.limit is not None:
        steps.append({"color": bad, "value": chart.limit})
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": chart.title,
        "description": chart.help,
        "datasource": "${DS_PROMETHEUS}",
        "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "targets": [{"refId": "A", "expr": chart.query, "legendFormat": chart.legend}],
        "fieldConfig": {
            "defaults": {
                "unit": chart.unit,
                "min": 0,
                "custom": {"thresholdsStyle": {"mode": "off" if chart.limit is None else "line"}},
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
    }
