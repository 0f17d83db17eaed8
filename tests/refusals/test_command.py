"""`holdfast refusals`, and what `holdfast exporter` shows of fences."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from holdfast.errors import BackendUnavailable, FenceRejected
from holdfast.fenced import FencedFile, SQLiteFence
from holdfast.fenced.refusal import FenceRefusal, RefusalRecord
from holdfast.observe.families import MAX_FAMILIES_COUNT
from holdfast.refusals.collector import FenceCollector, FenceCollectors, by_family
from tests.cli.harness import HOLDFAST, LONG, Cli
from tests.observe.test_exporter import page


def refuse_row(path: Path, resource: str = "orders/7") -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as shop:
        with SQLiteFence(shop).transaction(resource, 34):
            pass
        with pytest.raises(FenceRejected):
            SQLiteFence(shop).claim(resource, 33)


def refuse_file(path: Path) -> None:
    FencedFile(path).claim(34)
    with pytest.raises(FenceRejected):
        FencedFile(path).claim(33)


def test_fences_are_named_by_url_by_file_and_by_folder(tmp_path: Path) -> None:
    refuse_row(tmp_path / "shop.db")
    (tmp_path / "ledgers").mkdir()
    for name in ("a", "b"):
        refuse_file(tmp_path / "ledgers" / name)
    with Cli(tmp_path) as cli:
        found = cli.json("refusals", "--json", f"sqlite://{tmp_path}/shop.db", f"{tmp_path}/ledgers")
        assert [(each["kind"], each["resource"], each["count"]) for each in found] == [
            ("sqlite", "orders/7", 1),
            ("file", f"{tmp_path}/ledgers/a", 1),
            ("file", f"{tmp_path}/ledgers/b", 1),
        ]
        assert {key: found[0]["last"][0][key] for key in ("token", "mark", "owner")} == {
            "token": 33,
            "mark": 34,
            "owner": "",
        }
        assert found[0]["fence"] == f"sqlite://{tmp_path}/shop.db"
        [one] = cli.json("refusals", "--json", f"{tmp_path}/ledgers/a")
        assert one["resource"] == f"{tmp_path}/ledgers/a"


def test_a_table_for_people_and_a_prefix(tmp_path: Path) -> None:
    refuse_row(tmp_path / "shop.db")
    refuse_row(tmp_path / "shop.db", "stock/1")
    with Cli(tmp_path) as cli:
        done = cli.run("refusals", f"sqlite://{tmp_path}/shop.db", "--prefix", "orders/")
        assert done.code == 0
        header, row = done.out.splitlines()
        assert header.split() == ["resource", "refused", "time", "(UTC)", "token", "mark", "owner"]
        assert re.fullmatch(r"orders/7 +1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +33 +34 +–", row.strip())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{folder}/shop.db.none"], 64, "no fence beside it"),
        (["memory://"], 64, "no fence stands in front of"),
        (["redlock://a,b,c"], 64, "no fence stands in front of"),
        (["nosuch://a"], 64, "no fence stands in front of"),
        (["redis://user:secret@127.0.0.1:1"], 69, "the refusals at redis://user:…@127.0.0.1:1 cannot be read"),
        (["etcd://127.0.0.1:1"], 69, "no member of etcd answers"),
        (["--check", "sqlite://{folder}/shop.db"], 1, ""),
        (
            ["--check", "sqlite://{folder}/shop.db", "--prefix", "none"],
            0,
            "has kept no refusal of resources",
        ),
        (["sqlite://{folder}/shop.db"], 0, ""),
    ],
)
def test_exit_codes(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    refuse_row(tmp_path / "shop.db")
    with Cli(tmp_path) as cli:
        done = cli.run("refusals", *(word.format(folder=tmp_path) for word in words))
    assert done.code == code, done
    assert said in done.err
    assert "secret" not in done.err


def test_without_a_fence_it_is_the_engine(tmp_path: Path) -> None:
    with Cli(tmp_path) as cli:
        done = cli.run("refusals")
        assert (done.code, "has kept no refusal" in done.err) == (0, True)


def test_the_exporter_shows_what_fences_have_kept(tmp_path: Path) -> None:
    refuse_row(tmp_path / "shop.db")
    refuse_file(tmp_path / "ledger")
    url = f"sqlite://{tmp_path}/shop.db"
    words = [HOLDFAST, "exporter", "--url", f"sqlite://{tmp_path}/locks.db", "--fence", url]
    words += ["--fence", f"{tmp_path}/ledger", "--listen", "127.0.0.1:0", "--interval", "0"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+/metrics", process.stderr.readline())
        assert found is not None
        text = page(found[0])
        assert f'holdfast_fence_refusals_total{{family="orders/*",fence="{url}",kind="sqlite"}} 1.0' in text
        assert f'fence="{tmp_path}/ledger",kind="file"}} 1.0' in text
        assert f'holdfast_fence_up{{fence="{url}"}} 1.0' in text
        assert "holdfast_fence_last_refusal_timestamp_seconds{" in text
        refuse_row(tmp_path / "shop.db")
        assert f'holdfast_fence_refusals_total{{family="orders/*",fence="{url}",kind="sqlite"}} 2.0' in page(found[0])
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        process.communicate()


def test_an_exporter_of_an_engine_without_fences_shows_locks_only() -> None:
    words = [HOLDFAST, "exporter", "--url", "memory://", "--fence", "redlock://a", "--listen", "127.0.0.1:0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG * 3, check=False)
    assert (done.returncode, "no fence stands in front of" in done.stderr) == (64, True)


def test_a_fence_that_cannot_be_read_is_a_figure() -> None:
    def read() -> list[RefusalRecord]:
        raise BackendUnavailable("it is away")

    registry = CollectorRegistry()
    registry.register(FenceCollectors([FenceCollector("redis://a", "redis", read, lambda: 0.0, 5.0)]))
    assert 'holdfast_fence_up{fence="redis://a"} 0.0' in str(generate_latest(registry), "utf-8")


def test_families_are_bounded_and_know_their_last() -> None:
    names = [f"{chr(97 + number % 26)}x{number}y" for number in range(MAX_FAMILIES_COUNT + 50)]
    records = [RefusalRecord(name, 2, (FenceRefusal(float(at), 1, 2, ""),)) for at, name in enumerate(names)]
    found = by_family(records)
    assert len(found) == MAX_FAMILIES_COUNT + 1
    assert (found["other"].count, found["other"].last) == (100, float(len(names) - 1))
