"""`holdfast run --trace`: its spans are children of what its environment names, and parents of its command's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.harness import Cli

pytest.importorskip("opentelemetry.sdk.trace")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PROVIDER = """
import json, os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class Lines(SpanExporter):
    def export(self, spans):
        with open(os.environ["SPANS"], "a") as out:
            for span in spans:
                out.write(json.dumps(json.loads(span.to_json())) + "\\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
"""


@pytest.fixture
def traced(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A provider as `opentelemetry-instrument` sets it; returns where its spans are written to."""
    (cli.folder / "site").mkdir()
    (cli.folder / "site" / "sitecustomize.py").write_text(PROVIDER)
    cli.environment |= {
        "PYTHONPATH": str(cli.folder / "site"),
        "SPANS": str(cli.folder / "spans"),
        "TRACEPARENT": PARENT,
        "TRACESTATE": "vendor=1",
    }
    return cli.folder / "spans"


def test_the_command_finds_the_context_of_the_hold(cli: Cli, traced: Path) -> None:
    done = cli.run("run", "--trace", "reports/7", "--", "sh", "-c", 'echo "$TRACEPARENT $TRACESTATE"')
    assert done.code == 0, done.err
    spans = {span["name"]: span for span in map(json.loads, traced.read_text().splitlines())}
    assert spans.keys() == {"acquire reports/*", "hold reports/*", "release reports/*"}
    hold = spans["hold reports/*"]
    given, state = done.out.split()
    _, trace_id, parent_id, _ = PARENT.split("-")
    assert given.split("-")[1:3] == [trace_id, hold["context"]["span_id"][2:]]
    assert hold["parent_id"] == spans["acquire reports/*"]["parent_id"] == f"0x{parent_id}"
    assert state == "vendor=1"


def test_a_wait_that_ends_is_exported_too(cli: Cli, traced: Path) -> None:
    with cli.locks.lock("job"):
        assert cli.run("run", "--trace", "--timeout", "100ms", "job", "--", "echo", "never").code == 75
    [span] = map(json.loads, traced.read_text().splitlines())
    assert (span["name"], span["status"]["status_code"]) == ("acquire job", "ERROR")


def test_without_the_option_the_context_is_passed_on_as_it_is(cli: Cli, traced: Path) -> None:
    done = cli.run("run", "job", "--", "sh", "-c", 'echo "$TRACEPARENT"')
    assert done.out == f"{PARENT}\n"
    assert not traced.exists()


def test_without_a_provider_nothing_is_recorded_and_the_context_is_passed_on(cli: Cli) -> None:
    cli.environment |= {"TRACEPARENT": PARENT}
    done = cli.run("run", "--trace", "job", "--", "sh", "-c", 'echo "$TRACEPARENT"')
    assert (done.code, done.out) == (0, f"{PARENT}\n")


def test_without_the_library_it_is_refused_before_anything_starts(cli: Cli) -> None:
    (cli.folder / "opentelemetry.py").write_text("raise ImportError('not installed')\n")
    cli.environment |= {"PYTHONPATH": str(cli.folder)}
    done = cli.run("run", "--trace", "job", "--", "echo", "never")
    assert (done.code, done.out) == (os.EX_USAGE, "")
    assert "pip install 'holdfast[opentelemetry]'" in done.err
