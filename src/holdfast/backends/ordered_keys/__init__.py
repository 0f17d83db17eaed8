"""Locks on ordered keys: what etcd and ZooKeeper have in common. An engine brings its keys and its requests."""
