"""ZooKeeper (`zookeeper://`): claims are ephemeral sequential nodes; the protocol is spoken by ourselves."""
