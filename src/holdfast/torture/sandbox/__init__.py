"""The sandbox: throw-away processes on loopback ports in temporary folders, and the reaper that ends them."""

from .sandbox import NotAvailable, Sandbox
from .server import ServerNode

__all__ = ["NotAvailable", "Sandbox", "ServerNode"]
