"""One transaction through etcd's JSON gateway, with the standard library alone: for those who have no client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from .programs import Txn

if TYPE_CHECKING:
    import ssl


def gateway(
    address: str, *, token: str = "", timeout: float = 5.0, tls: ssl.SSLContext | None = None
) -> Callable[[Txn], Txn]:
    """A function that carries out a transaction at `address` ("http://127.0.0.1:2379").

    `token` is what `/v3/auth/authenticate` answers, where etcd asks for a user.
    """

    import urllib.request  # which takes longer to import than all the rest of this room

    def transact(txn: Txn) -> Txn:
        request = urllib.request.Request(f"{address}/v3/kv/txn", json.dumps(txn).encode())
        if token:
            request.add_header("Authorization", token)
        with urllib.request.urlopen(request, timeout=timeout, context=tls) as reply:
            answer: Txn = json.load(reply)
            return answer

    return transact
