"""The fence for nodes of ZooKeeper, through the user's own client of kazoo."""

from .fence import FencedNode, ZooKeeperFence

__all__ = ["FencedNode", "ZooKeeperFence"]
