"""Nodes of ZooKeeper."""
