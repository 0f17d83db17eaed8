"""tooz, ZooKeeper driver: a lock of kazoo's."""

from bench.engines.zookeeper import address
from bench.model import Target
from bench.tooz import tooz


def url(target: Target) -> str:
    host, port = address(target)
    return f"kazoo://{host}:{port}"


CONTENDERS = (tooz("kazoo", url, cannot={"leases": "the same as kazoo"}),)
