"""etcd: a line of keys per name, on a cluster that rests on consensus."""
