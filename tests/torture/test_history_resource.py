"""The resource keeps what it is given: three disciplines, one log in its own order, through the kill of a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import FenceRejected, Misconfigured
from holdfast.torture.checkers import judge
from holdfast.torture.history import DISCIPLINES, Discipline, Run, Verb
from holdfast.torture.history_reader import load
from holdfast.torture.recorder import Recorder
from holdfast.torture.resource import FILE, Resource, ResourceState

ADDS = """
import sys
from holdfast.torture.resource import Resource
with Resource(sys.argv[1], sys.argv[4], client=sys.argv[2]) as resource:
    for token in range(1, int(sys.argv[3]) + 1):
        resource.write(sys.argv[2], token, resource.read(sys.argv[2], token))
"""


def two(folder: Path, discipline: Discipline) -> tuple[Resource, Resource]:
    return tuple(Resource(folder / FILE, discipline, client=f"c{n}") for n in (1, 2))  # type: ignore[return-value]


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_one_after_the_other(discipline: Discipline, tmp_path: Path) -> None:
    one, other = two(tmp_path, discipline)
    with one, other:
        for token, resource in enumerate((one, other, one, other), 1):
            resource.write("a", token, resource.read("a", token))
        (final,) = one.finals()
        writes = [commit for commit in one.commits() if commit.verb == "write"]
    assert final.counter == 4
    assert final.members == {commit.number for commit in writes}
    assert final.version == writes[-1].number
    assert [commit.client for commit in writes] == ["c1", "c2", "c1", "c2"]
    assert all(commit.before == commit.parent for commit in writes)
    steps = ["claim", "write"] if discipline == "claim-before-read" else ["write"]
    with Resource(tmp_path / FILE) as resource:
        assert [commit.verb for commit in resource.commits()] == steps * 4


def test_unfenced_the_last_write_wins(tmp_path: Path) -> None:
    stale, fresh = two(tmp_path, "unfenced")
    with stale, fresh:
        seen = stale.read("a", 1)
        lost = fresh.write("a", 2, fresh.read("a", 2))
        kept = stale.write("a", 1, seen)
        (final,) = stale.finals()
    assert final.members == {kept}
    assert lost not in final.members
    assert final.counter == 1


def test_check_on_write_refuses_what_comes_behind_a_write_only(tmp_path: Path) -> None:
    stale, fresh = two(tmp_path, "check-on-write")
    with stale, fresh:
        seen, seen_too = stale.read("a", 1), fresh.read("a", 2)
        lost = stale.write("a", 1, seen)  # between the new holder's read and its write: accepted
        kept = fresh.write("a", 2, seen_too)
        with pytest.raises(FenceRejected):
            stale.write("a", 1, stale.read("a", 1))
        (final,) = stale.finals()
    assert final.members == {kept}
    assert lost not in final.members


def test_claim_before_read_refuses_it(tmp_path: Path) -> None:
    stale, fresh = two(tmp_path, "claim-before-read")
    with stale, fresh:
        seen = stale.read("a", 1)
        newer = fresh.read("a", 2)
        with pytest.raises(FenceRejected):
            stale.write("a", 1, seen)
        with pytest.raises(FenceRejected):
            stale.read("a", 1)
        version = fresh.write("a", 2, newer)
        (final,) = stale.finals()
    assert final.members == {version}


@pytest.mark.parametrize(("discipline", "lost"), [("unfenced", 1), ("check-on-write", 1), ("claim-before-read", 0)])
def test_the_whole_story_recorded_and_judged(discipline: Discipline, lost: int, tmp_path: Path) -> None:
    """Holder 1 reads and sleeps; holder 2 reads; 1 writes late, then 2 writes."""
    stale, fresh = two(tmp_path, discipline)
    with stale, fresh, Recorder(tmp_path, "c1") as one, Recorder(tmp_path, "c2") as other:
        seen = [read(one, stale, 1), read(other, fresh, 2)]
        write(one, stale, 1, seen[0])
        write(other, fresh, 2, seen[1])
    history = load(tmp_path)
    history.run = Run("told", discipline=discipline)
    judgement = judge(history)
    assert judgement.counts["lost_updates"] == lost
    assert judgement.counts["acknowledged"] == 1 + lost
    for commit in history.commits:
        assert any((commit.client, commit.seq) == (o.client, o.seq) for o in history.operations)


def read(recorder: Recorder, resource: Resource, token: int) -> ResourceState:
    verb: Verb = "claim" if resource.discipline == "claim-before-read" else "read"
    operation = recorder.invoke(verb, "a", of=1, token=token)
    seen = resource.read("a", token, operation.seq)
    operation.ok(parent=seen.version)
    return seen


def write(recorder: Recorder, resource: Resource, token: int, seen: ResourceState) -> None:
    operation = recorder.invoke("write", "a", of=1, token=token, parent=seen.version)
    try:
        operation.ok(version=resource.write("a", token, seen, operation.seq))
    except FenceRejected as error:
        operation.fail(error)


@pytest.mark.parametrize("discipline", ["unfenced", "claim-before-read"])
def test_a_killed_process_leaves_a_whole_resource(discipline: Discipline, tmp_path: Path) -> None:
    file = tmp_path / FILE
    Resource(file).close()
    command = [sys.executable, "-c", ADDS, str(file)]
    others = [subprocess.Popen([*command, f"c{number}", "100", discipline]) for number in (1, 2)]
    doomed = subprocess.Popen([*command, "doomed", "1000000", discipline])
    with Resource(file) as resource:
        while not any(final.name == "doomed" for final in resource.finals()):
            assert doomed.poll() is None
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    assert [process.wait() for process in others] == [0, 0]
    with Resource(file) as resource:
        finals = {final.name: final for final in resource.finals()}
        writes = [commit for commit in resource.commits() if commit.verb == "write"]
    assert (finals["c1"].counter, finals["c2"].counter) == (100, 100)
    for final in finals.values():
        assert final.counter == len(final.members) == sum(commit.name == final.name for commit in writes)


def test_an_unknown_discipline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="'hopeful' is no discipline"):
        Resource(tmp_path / FILE, "hopeful")  # type: ignore[arg-type]
