"""Keys of etcd."""
