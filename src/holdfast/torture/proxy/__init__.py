"""Our own network between clients and nodes: a process that carries bytes, or does not."""

from .network import ProxyNetwork

__all__ = ["ProxyNetwork"]
