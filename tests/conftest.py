"""What all tests share: servers, how hard hypothesis looks, and how tests are spread over workers.

1. One server of a kind for each worker, started when it is first needed. Tests keep apart by namespace or by database,
   and leave the server as they found it; a test that breaks or configures a server starts one of its own.
2. The default profile of hypothesis gives the same verdict on every machine and every run. To look for what it does not
   find, run `HYPOTHESIS_PROFILE=explore pytest tests/unit`: other examples each time, and twenty times as many.
3. `tests/support/spread.py` says which tests go to the same worker.
4. Signals are as an interactive shell leaves them: a shell starts background jobs with SIGINT and SIGQUIT ignored, and
   `nohup` with SIGHUP ignored; what tests start would inherit that.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from holdfast.observe.log_limit import RepeatFilter

if TYPE_CHECKING:
    from tests.etcd.cluster import Cluster
    from tests.mysql.server import Server as MariaDBServer
    from tests.postgresql.pooler import Pooler
    from tests.postgresql.server import Server as PostgreSQLServer
    from tests.redlock.quorums import Servers
    from tests.support.redis_server import RedisServer
    from tests.zookeeper.ensemble import Ensemble

pytest_plugins = ["tests.support.folder_times", "tests.support.spread"]

PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)  # no "explain", which takes longest
CALM = settings(  # how long an example takes says nothing on a machine that stalls
    phases=PHASES, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("same", CALM, derandomize=True)
settings.register_profile("explore", CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def unlimited_log() -> None:
    """What other tests have logged does not count against the limit of repeated lines."""
    for each in logging.getLogger("holdfast").filters:
        if isinstance(each, RepeatFilter):
            each.forget()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Python 3.11 parses source in one thread at a time: two that show a traceback at once are a SystemError in one of
    them, and in pytest that would end the whole run. The second attempt is alone."""
    try:
        return (yield)
    except SystemError:
        return pytest.TestReport.from_item_and_call(item, call)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", action="append", metavar="NAME", help="run the contract on this engine only; may be given again"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the engines of the contract that were not asked for."""
    if wanted := config.getoption("--engine"):
        left_out = [item for item in items if engine_of(item) not in (None, *wanted)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def engine_of(item: pytest.Item) -> str | None:
    """The column of the contract's matrix that a test belongs to."""
    call = getattr(item, "callspec", None)
    return call.params.get("under_test") if call is not None else None


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    from tests.support.redis_server import running

    with running() as server:
        yield server


@pytest.fixture(scope="session")
def redlock_servers() -> Iterator[Servers]:
    """Five of them."""
    from tests.redlock.quorums import quorum

    with quorum(5) as servers:
        yield servers


@pytest.fixture(scope="session")
def etcd_cluster() -> Iterator[Cluster]:
    """Three members."""
    from tests.etcd.cluster import running

    with running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def zookeeper_ensemble() -> Iterator[Ensemble]:
    """Three members."""
    from tests.zookeeper.ensemble import running

    with running() as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLServer]:
    from tests.postgresql.server import running

    with running() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql_pooler(postgresql_server: PostgreSQLServer) -> Iterator[Pooler]:
    """In transaction mode, in front of the shared server."""
    from tests.postgresql.pooler import pooling

    with pooling(postgresql_server) as pooler:
        yield pooler


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    from tests.mysql.server import serving

    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def example_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the engine in examples/lockd."""
    from tests.support.example_engine import running

    with running(tmp_path_factory.mktemp("example")) as url:
        yield url
