"""The engines of the matrix. To add one is one entry, and `test_no_cell_is_missing.py` fails until it is made.

Either it is played here: a context manager gets a folder of its own and yields a `Venue`. Or it needs servers, and
plays the contract beside its other tests: then the entry names the file that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from holdfast.testing import Venue, memory_venue


@contextmanager
def memory(folder: Path) -> Iterator[Venue]:
    yield memory_venue()


@contextmanager
def sqlite(folder: Path) -> Iterator[Venue]:
    yield Venue(f"sqlite://{folder}/locks.db", own_clock=True, network=False)


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Venue]]] = {
    "memory": memory,
    "sqlite": sqlite,
}

ELSEWHERE = {
    "etcd": "tests/etcd/test_contract_of_etcd.py",
    "mysql": "tests/mysql/test_contract.py",
    "mysql.session": "tests/mysql/test_contract_of_sessions.py",
    "redlock": "tests/redlock/test_contract_of_redlock.py",
    "postgresql": "tests/postgresql/test_contract.py",
    "postgresql.session": "tests/postgresql/test_contract_of_sessions.py",
    "redis": "tests/redis/test_contract_of_redis.py",
    "zookeeper": "tests/zookeeper/test_contract_of_zookeeper.py",
}
