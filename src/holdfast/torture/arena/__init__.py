"""The arena: throw-away processes on loopback ports in temporary folders, and what ends them whatever happens."""

from .node import Node
from .site import NotHere, Site

__all__ = ["Node", "NotHere", "Site"]
