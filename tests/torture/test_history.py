"""What was recorded comes back: across kills, threads, processes, and through an exported file."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.errors import FenceRejected, Misconfigured
from holdfast.torture.garbage_collection import gc_disabled
from holdfast.torture.history import FaultRecord, Leftover, Run, now
from holdfast.torture.history_reader import export, load
from holdfast.torture.recorder import LineWriter, Log, Recorder
from holdfast.torture.synthetic_history import SyntheticPlan, make_history

WRITES_FOR_EVER = """
import sys
from holdfast.torture.recorder import Recorder
recorder = Recorder(sys.argv[1], "c1")
print("ready", flush=True)
while True:
    acquire = recorder.invoke("acquire", "a", weight=1, capacity=1)
    acquire.ok(owner="o" * 200, token=acquire.seq)
"""


def test_an_operation_is_two_lines(tmp_path: Path) -> None:
    before = now()
    with Recorder(tmp_path, "c1") as recorder:
        acquire = recorder.invoke("acquire", "a", mode="write", weight=5, capacity=5, fair=False)
        acquire.ok(owner="o1", token=7)
        recorder.point("queued", "a", of=acquire.seq, until=99)
        write = recorder.invoke("write", "a", of=acquire.seq, token=7, parent=3)
        write.fail(FenceRejected("a", 7, 8))
        recorder.invoke("release", "a", of=acquire.seq, token=7).info("no reply")
        recorder.invoke("release", "a", of=acquire.seq, token=7)
    took, queued, wrote, released, cut_off = load(tmp_path).operations
    assert before <= took.invoked <= (took.returned or 0) <= now()
    assert (took.client, took.outcome, took.mode, took.weight, took.capacity) == ("c1", "ok", "write", 5, 5)
    assert (took.fair, took.owner, took.token, took.index) == (False, "o1", 7, 0)
    assert (queued.verb, queued.of, queued.until, queued.invoked) == ("queued", took.seq, 99, queued.returned)
    assert (wrote.outcome, wrote.parent, wrote.version) == ("fail", 3, None)
    assert wrote.error.startswith("FenceRejected: the fence at 'a' refused token 7")
    assert (released.outcome, released.error, released.held) == ("info", "no reply", None)
    assert (cut_off.outcome, cut_off.returned) == ("info", None)


def test_what_the_controller_records(tmp_path: Path) -> None:
    run = Run("redis", 7, 0.2, "unfenced", "gc-pause", clients=3, promises=("fencing",), notes=("one node",))
    pause, netem = FaultRecord("pause", "client:c1", 5, 9), FaultRecord("delay", "engine", note="not run: no netem")
    with Log(tmp_path) as log:
        log.run(run)
        log.fault(pause)
        log.fault(netem)
        assert load(tmp_path).ended is None
        log.left(Leftover("a", "o1", 7))
        log.end()
    history = load(tmp_path)
    assert history.run == run
    assert history.faults == [pause, netem]
    assert [(fault.client, fault.was_run) for fault in history.faults] == [("c1", True), (None, False)]
    assert history.left == [Leftover("a", "o1", 7)]
    assert history.ended is not None


def test_a_log_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    for fault in ("first", "second"):
        with Log(tmp_path) as log:
            log.fault(FaultRecord(fault, "engine", 1, 2))
    assert [fault.fault for fault in load(tmp_path).faults] == ["first", "second"]


def test_a_kill_loses_nothing_that_was_announced(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        (file,) = tmp_path.glob("client-*.jsonl")
        while file.stat().st_size < 100_000:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    operations = load(tmp_path).operations
    assert [operation.seq for operation in operations] == list(range(1, len(operations) + 1))
    assert all(operation.outcome == "ok" for operation in operations[:-1])


def test_a_torn_last_line_is_dropped_and_any_other_is_an_error(tmp_path: Path) -> None:
    with Recorder(tmp_path, "c1") as recorder:
        recorder.invoke("acquire", "a").ok()
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_text()
    file.write_text(whole + '{"kind": "invo')
    assert len(load(tmp_path).operations) == 1
    file.write_text('{"kind": "invo\n' + whole)
    with pytest.raises(Misconfigured, match="is not a file of JSON lines"):
        load(tmp_path)


def test_threads_share_a_recorder(tmp_path: Path) -> None:
    with Recorder(tmp_path, "c1") as recorder:

        def work() -> None:
            for _ in range(200):
                recorder.invoke("acquire", "a").ok(owner="o" * 500)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    operations = load(tmp_path).operations
    assert {operation.seq for operation in operations} == set(range(1, 801))
    assert all(operation.outcome == "ok" for operation in operations)


def test_a_process_number_that_comes_back_is_another_process(tmp_path: Path) -> None:
    for _ in range(2):
        with Recorder(tmp_path, "c1") as recorder:
            recorder.invoke("acquire", "a").ok()
    first, second = load(tmp_path).operations
    assert first.seq == second.seq
    assert first.process != second.process


def test_operations_of_all_processes_are_merged_by_time(tmp_path: Path) -> None:
    with Recorder(tmp_path, "c1") as one, Recorder(tmp_path, "c2") as two:
        slow = one.invoke("acquire", "a")
        two.invoke("acquire", "a").ok()
        slow.ok()
        one.invoke("release", "a").ok()
    operations = load(tmp_path).operations
    assert [(o.client, o.verb) for o in operations] == [("c1", "acquire"), ("c2", "acquire"), ("c1", "release")]
    assert [o.index for o in operations] == [0, 1, 2]


def test_an_exported_history_says_the_same(tmp_path: Path) -> None:
    history = make_history(SyntheticPlan(holds=100, discipline="unfenced", pauses=0.1, bug="left-behind"))
    file = tmp_path / "out.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in export(history)))
    times = [line["time"] for line in map(json.loads, file.read_text().splitlines()) if "verb" in line and "of" in line]
    again = load(file)
    assert again.run == history.run
    assert sorted(map(repr, again.operations)) == sorted(map(repr, history.operations))
    assert (again.faults, again.commits, again.finals) == (history.faults, history.commits, history.finals)
    assert (again.left, again.ended) == (history.left, history.ended)
    assert times


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    for worked in (True, False):
        if not worked:
            gc.disable()
        try:
            load(tmp_path)
            with gc_disabled():
                assert not gc.isenabled()
            assert gc.isenabled() == worked
        finally:
            gc.enable()


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="does not exist"):
        load(tmp_path / "nowhere")
    with LineWriter(tmp_path / "controller.jsonl") as lines:
        lines.put({"kind": "surprise"})
    with pytest.raises(Misconfigured, match="the unknown kind 'surprise'"):
        load(tmp_path)
