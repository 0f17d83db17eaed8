# Generated from src/holdfast/fenced/redis/async_fence.py by `make generate`: change that file, not this one.
"""Fenced keys: strings and hashes whose every write is one step with the check that nobody newer has claimed them.

1. The mark is a key of its own in the slot of the fenced key. It stays for as long as the data may be written: it has
   no expiry, and it must not be evicted (`maxmemory-policy noeviction`). Without it every write is refused.
2. `claim` raises the mark; what is read through the claimed key after that stays true until a newer holder claims.
3. Reads through the claimed key are checked too: a stale holder learns of it when it reads, not only when it writes.
4. Who writes the key around the fence is not stopped by it.
5. A command whose reply is lost is done once, and answers as it did, however often the client sends it again by itself
   (`once.lua`); where that cannot be known, `OutcomeUnknown`. An error of the client means: it was done or it was not.
6. A refusal is kept in the step that refuses, in a key of its own (`refusal.lua`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..._core.pickling import unpicklable
from ..clients import FENCE_ELSEWHERE, check_blocking_client, check_client
from ..holder import Holder, token_of
from ..refusal import owner_of
from .programs import COMMAND, Word, answered, call_of, check_key, claimed, claiming, digits, mark_key, pairs

WANTED = "a client of redis-py, as from redis.Redis.from_url(…)"


class RedisFence:
    """A fence in front of keys, through a blocking client of redis-py (`redis.Redis` or `redis.RedisCluster`).

    fence = RedisFence(redis.Redis())
    order = fence.claim("orders/7", lease)      # refused, if a newer holder has claimed it
    paid = int(order.hget("paid") or 0)
    order.hset({"paid": paid + 100})            # refused, if one has since
    """

    def __init__(self, client: Any) -> None:
        check_client(client, "RedisFence", WANTED, "register_script", "get")
        check_blocking_client(client, "RedisFence")
        self._client = client

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def claim(self, key: str, lease: Holder) -> FencedKey:
        """Raise the mark of `key` to the lease's token, or raise `FenceRejected` if it is beyond."""
        token, owner = token_of(lease), owner_of(lease)
        script = self._client.register_script(claiming())
        claimed(script(keys=[mark_key(check_key(key))], args=[digits(token), owner]), key, token)
        return FencedKey(self._client, key, token, owner)

    def mark(self, key: str) -> int | None:
        """The highest token that has claimed `key`; None if none has."""
        mark = self._client.get(mark_key(check_key(key)))
        return None if mark is None else int(mark)


class FencedKey:
    """A claimed key. Everything done through it is refused as soon as a newer holder has claimed it."""

    def __init__(self, client: Any, key: str, token: int, owner: str = "") -> None:
        self._client = client
        self._owner = owner
        self.key = key
        self.token = token

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def get(self) -> Any:
        """The string; None if there is none."""
        return self.execute("GET")

    def set(self, value: Word, *, px: int | None = None) -> None:
        """Set the string; with `px` it expires after so many ms (the mark does not)."""
        self.execute("SET", value, *(() if px is None else ("PX", px)))

    def delete(self) -> bool:
        """Delete the key. False if it was not there."""
        return bool(self.execute("DEL"))

    def hget(self, field: Word) -> Any:
        """One field of the hash; None if there is none."""
        return self.execute("HGET", field)

    def hgetall(self) -> dict[Any, Any]:
        """All fields of the hash."""
        return pairs(self.execute("HGETALL"))

    def hset(self, fields: Mapping[Any, Word]) -> int:
        """Set fields of the hash. Answers how many are new."""
        return int(self.execute("HSET", *(word for pair in fields.items() for word in pair)))

    def hdel(self, *fields: Word) -> int:
        """Delete fields of the hash. Answers how many there were."""
        return int(self.execute("HDEL", *fields))

    def execute(self, command: str, *words: Word) -> Any:
        """Any command whose first argument is the key: `execute("INCRBY", 5)`. The reply as Redis gives it."""
        return self.run(COMMAND, args=(command, *words))

    def run(self, lua: str, keys: Sequence[str] = (), args: Sequence[Word] = ()) -> Any:
        """A program of your own, in one step with the check. KEYS[1] is this key, `keys` (of its slot) follow."""
        call, begin = call_of(self.key, self.token, self._owner, lua, keys, args), time.monotonic()
        reply = self._client.register_script(call.text)(keys=call.keys, args=call.words)
        return answered(call, reply, time.monotonic() - begin, self.key, self.token)
