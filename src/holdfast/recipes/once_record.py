"""What is remembered of an attempt: the contents of its record, as data and as JSON."""

from __future__ import annotations

import hashlib
import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, NamedTuple, Protocol

from ..errors import Misconfigured
from ..record import Record

MAX_RESULT_BYTES = 1 << 16
RUNNING, DONE, FAILED, ENDED = "running", "done", "failed", "ended"
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode_first = json.JSONDecoder().raw_decode


class Origin(NamedTuple):
    """Which process makes an attempt, and when it began, in seconds of the calendar."""

    host: str
    pid: int
    at: float


class AttemptRecord(NamedTuple):
    """One attempt and what is left of those before it.

    `running` (alive, or dead if nobody stands behind the record), `done` with a result, `failed` for good, or `ended`
    by an error, so that another attempt may begin.
    """

    state: str
    number: int
    fingerprint: str
    phases: tuple[tuple[str, object], ...]
    origin: Origin
    result: bytes = b""
    error: str = ""

    def next(self, fingerprint: str, origin: Origin) -> AttemptRecord:
        """The attempt after this one: it goes on behind the last phase."""
        known = fingerprint or self.fingerprint
        return self._replace(state=RUNNING, number=self.number + 1, fingerprint=known, origin=origin, error="")

    def reached(self, phase: str, value: object) -> AttemptRecord:
        return self._replace(phases=(*self.phases, (phase, value)))

    def done(self, result: bytes) -> AttemptRecord:
        return self._replace(state=DONE, result=result, error="")

    def over(self, state: str, error: str) -> AttemptRecord:
        return self._replace(state=state, error=error[:500])

    def encode(self) -> bytes:
        """As JSON, written out: it is the same as `json` writes, at a fifth of the cost."""
        host, pid, at = self.origin
        phases = _encode(self.phases) if self.phases else "[]"
        result = b2a_base64(self.result, newline=False).decode() if self.result else ""
        return (
            f'{{"state":{_quoted(self.state)},"number":{self.number},"fingerprint":{_quoted(self.fingerprint)},'
            f'"phases":{phases},"origin":{{"host":{_quoted(host)},"pid":{pid},"at":{at!r}}},'
            f'"result":"{result}","error":{_quoted(self.error)}}}'
        ).encode()

    @classmethod
    def decode(cls, record: Record) -> AttemptRecord:
        try:
            fields = _decode(record.data)
            fields["origin"] = Origin(**fields["origin"])
            fields["phases"] = tuple([(str(name), value) for name, value in fields["phases"]])
            fields["result"] = a2b_base64(fields["result"])
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise Misconfigured(
                f"the record {record.key!r} was not written by this version of holdfast ({error}); look at it with "
                "`holdfast once show`, and remove it with `holdfast once forget`"
            ) from error


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt as others see it: what `Once.look` shows, and what a `takeover` function is called with."""

    key: str
    state: str
    """running, dead (running, and nobody stands behind it), done, failed, or ended."""
    number: int
    """How many attempts there were, this one included."""
    token: int
    phases: dict[str, object]
    error: str
    host: str
    pid: int
    began: float
    """Seconds of the calendar of the process that made the attempt."""
    result: bytes = field(default=b"", repr=False)
    """As it was encoded."""


def view(key: str, record: Record, found: AttemptRecord) -> AttemptView:
    state = "dead" if found.state == RUNNING and record.remaining <= 0 else found.state
    origin = found.origin
    return AttemptView(
        key, state, found.number, record.version, dict(found.phases), found.error, origin.host, origin.pid, origin.at,
        found.result,
    )  # fmt: skip


class Completed:
    """What a `takeover` function answers with, if it knows that the dead attempt has done its work: its result."""

    def __init__(self, result: object = None) -> None:
        self.result = result


def _decode(data: bytes) -> Any:
    """As `json.loads`, which looks for more than `encode` ever writes."""
    text = data.decode()
    value, end = _decode_first(text)
    return value if end == len(text) else json.loads(text)


class ResultCodec(Protocol):
    """How results become bytes, and what they were again."""

    def encode(self, value: Any) -> bytes:
        """The bytes to be kept."""
        ...

    def decode(self, data: bytes) -> Any:
        """What was kept."""
        ...


class JsonCodec:
    """Results as JSON: numbers, text, lists, dicts with text as keys, True, False and None.

    >>> JsonCodec().decode(JsonCodec().encode({"charged": 100}))
    {'charged': 100}
    """

    def encode(self, value: object) -> bytes:
        """As JSON, in UTF-8."""
        return _encode(value).encode()

    def decode(self, data: bytes) -> object:
        """From JSON."""
        return _decode(data)


def codec_of(codec: ResultCodec | None, name: str) -> ResultCodec:
    """JSON, or the user's own; one that is none is refused before any work is done whose result it could not keep."""
    if codec is None:
        return JsonCodec()
    if isinstance(codec, type) or not all(callable(getattr(codec, verb, None)) for verb in ("encode", "decode")):
        raise Misconfigured(f"codec of {name!r} is an object with encode and decode, not {codec!r}")
    return codec


def encoded(codec: ResultCodec, value: object, limit: int, of: str) -> bytes:
    """The bytes of a result; raises `Misconfigured` if it cannot be kept."""
    try:
        data = codec.encode(value)
    except Exception as error:
        raise Misconfigured(
            f"the result of {of} cannot be kept: {error}; give {type(codec).__name__} what it can encode, or a codec= "
            "of your own"
        ) from error
    if not isinstance(data, bytes):
        raise Misconfigured(f"the codec of {of} encodes to {type(data).__name__}; it must be bytes")
    if len(data) > limit:
        raise Misconfigured(
            f"the result of {of} has {len(data)} bytes; at most {limit} are kept (max_bytes=): keep a reference to it"
        )
    return data


def fingerprint_of(payload: object, of: str) -> str:
    """A short text that is the same for the same payload; "" for `...`, none: that is not compared."""
    if payload is ...:
        return ""
    if isinstance(payload, bytes | bytearray):
        text = b"b" + bytes(payload)
    else:
        try:
            text = b"j" + json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise Misconfigured(
                f"the fingerprint of {of} is bytes, text, or what JSON can hold: {error}; give the part of the payload "
                "that must not change"
            ) from error
    return hashlib.sha256(text).hexdigest()


TakeoverFunction = Callable[[AttemptView], object]
