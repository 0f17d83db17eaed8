"""A hash of Redis: some of its fields, or all of them.

1. Without a version field, the fields that were read are compared (all of them, and that there are no others, unless
   `fields` names some): whoever changed one in between is noticed, also one that knows nothing of this library.
2. With a version field that field alone is compared, and counted up by each write: versions do not repeat, and a write
   is small. Whoever changes the hash without counting is not noticed. A hash without the field is at version 0.
3. What a change returns is what is set, as in `versioned_update`: other fields stay, and a field given as None goes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from ...errors import Misconfigured, Missing, VersionConflict
from ...fenced.redis.programs import pairs
from ..codecs import ValueCodec, decoded, encoded
from ..update import Step, Versioned
from .requests import Delivery, RedisCommand, Word, program

T = TypeVar("T")
WHAT = "the Redis hash"
Raw = dict[str, bytes]


class HashResource(Generic[T]):
    """One hash."""

    def __init__(
        self,
        key: str,
        codec: ValueCodec[T],
        to_bytes: Callable[[object], bytes],
        fields: Iterable[str] | None,
        version_field: str | None,
    ) -> None:
        self._key, self._codec, self._to_bytes = key, codec, to_bytes
        self._fields = check_fields(fields, version_field)
        self._counted = version_field
        self._delivery = Delivery(key)
        self._where = f"{WHAT} {key!r}"

    def claim(self, token: int) -> Step[None]:
        return self._delivery.claim(token)

    def read(self) -> Step[Versioned[dict[str, T]]]:
        raw = yield from self._read()
        version: Hashable = self._snapshot(raw) if self._counted is None else self._count(raw.pop(self._counted, None))
        return Versioned({name: decoded(self._codec, data, self._where) for name, data in raw.items()}, version)

    def write(
        self, value: Mapping[str, T | None], version: Hashable, token: int | None
    ) -> Step[Versioned[dict[str, T]]]:
        sets, deletes = self._encoded(value)
        words, after = self._predicate(version, sets, deletes)
        if version is None and not sets:
            raise Misconfigured(
                f"{self._where} is to be created without a field, and would not be there; give at least one"
            )
        words += (len(sets), *(word for pair in sets.items() for word in pair), *deletes)
        if not (yield from self._delivery.write(program("hash.lua"), words, token, self._where)):
            raise VersionConflict(WHAT, self._key, version)
        return Versioned({name: v for name, v in value.items() if v is not None}, after)

    def _read(self) -> Step[Raw]:
        if self._fields is None:
            found = pairs((yield RedisCommand(("HGETALL", self._key))))
            try:
                raw = {self._to_bytes(name).decode(): self._to_bytes(data) for name, data in found.items()}
            except UnicodeDecodeError as error:
                raise Misconfigured(
                    f"{self._where} has a field whose name is not text; name those to use with fields="
                ) from error
            if not raw:
                raise Missing(WHAT, self._key)
            return raw
        names = self._fields if self._counted is None else (*self._fields, self._counted)
        values = yield RedisCommand(("HMGET", self._key, *names))
        assert isinstance(values, (list, tuple))
        raw = {name: self._to_bytes(data) for name, data in zip(names, values, strict=True) if data is not None}
        if not raw and not (yield RedisCommand(("EXISTS", self._key))):
            raise Missing(WHAT, self._key)
        return raw

    def _snapshot(self, raw: Raw) -> tuple[tuple[str, bytes | None], ...]:
        names = sorted(raw) if self._fields is None else self._fields
        return tuple((name, raw.get(name)) for name in names)

    def _count(self, data: bytes | None) -> int:
        return 0 if data is None else decoded(_COUNT, data, f"the field {self._counted!r} of {self._where}")

    def _encoded(self, value: Mapping[str, T | None]) -> tuple[Raw, list[str]]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise Misconfigured(f"{self._where} is given the fields to set, as a dict with text as keys, not {value!r}")
        allowed = set(value) if self._fields is None else set(self._fields)
        if wrong := sorted(set(value) - allowed | ({self._counted} & set(value) if self._counted else set())):
            raise Misconfigured(f"{self._where} is not to set {wrong}: it was not read, or it is the version field")
        if not value:
            raise Misconfigured(f"{self._where} is given no field to set; give at least one")
        sets = {name: encoded(self._codec, v, self._where) for name, v in value.items() if v is not None}
        return sets, [name for name, v in value.items() if v is None]

    def _predicate(self, version: Hashable, sets: Raw, deletes: list[str]) -> tuple[tuple[Word, ...], Hashable]:
        """What has to be true, in words of the program; and the version that stands after the write."""
        if self._counted is not None:
            if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
                raise self._not_a_version(version)
            after = (version or 0) + 1
            sets[self._counted] = b"%d" % after
            if version is None:
                return (0, "", 0), after
            return (1, "", 1, self._counted, "or not" if version == 0 else "is", version), after
        if version is not None and not (isinstance(version, tuple) and all(_is_pair(pair) for pair in version)):
            raise self._not_a_version(version)
        before: dict[str, bytes | None] = {} if version is None else dict(version)
        merged = {**before, **sets, **dict.fromkeys(deletes)}
        names = sorted(name for name in merged if merged[name] is not None) if self._fields is None else self._fields
        snapshot = tuple((name, merged.get(name)) for name in names)
        if version is None:
            return (0, "", 0), snapshot
        words: list[Word] = [1, len(before) if self._fields is None else "", len(before)]
        for name, data in before.items():
            words += (name, "not", "") if data is None else (name, "is", data)
        return tuple(words), snapshot

    def _not_a_version(self, version: object) -> Misconfigured:
        return Misconfigured(f"the version of {self._where} is what read() gave, not {version!r}")


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)


def _parse_count(data: bytes) -> int:
    count = int(data)
    if b"%d" % count != data or count < 0:
        raise ValueError("not a count")
    return count


_COUNT: ValueCodec[int] = ValueCodec("a count", lambda count: b"%d" % count, _parse_count)


def check_fields(fields: Iterable[str] | None, version_field: str | None) -> tuple[str, ...] | None:
    """The fields, in a fixed order."""
    if version_field is not None and (not isinstance(version_field, str) or not version_field):
        raise Misconfigured(f"version_field is the name of a field, not {version_field!r}")
    if fields is None:
        return None
    names = () if isinstance(fields, (str, bytes)) else tuple(fields)
    if not names or not all(isinstance(name, str) for name in names) or version_field in names:
        raise Misconfigured(f"fields are names of fields, without the version field, as in ['paid'], not {fields!r}")
    return tuple(sorted(set(names)))
