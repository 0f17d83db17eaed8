"""How requests reach an etcd cluster: its JSON gateway, on kept-alive HTTP/1.1 connections of our own."""
