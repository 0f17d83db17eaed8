"""tooz, etcd driver: etcd3gw behind its own face."""

from bench.engines.etcd import endpoints
from bench.model import Target
from bench.tooz import tooz


def url(target: Target) -> str:
    host, port = endpoints(target)[0]
    return f"etcd3+http://{host}:{port}?api_version=v3"


CONTENDERS = (tooz("etcd3gw", url),)
