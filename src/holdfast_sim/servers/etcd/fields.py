"""JSON as protobuf reads it: names in snake or camel case, 64-bit numbers as numbers or text, bytes as base64, unknown
names passed over, absent fields zero."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence

from .errors import RpcError, unreadable

Json = dict[str, object]
_decode = json.JSONDecoder().raw_decode


class Fields:
    """One message."""

    __slots__ = ("_values",)

    def __init__(self, value: object) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise _mistyped(value, "map[string]json.RawMessage")
        self._values: dict[str, object] = value

    def _get(self, name: str) -> object:
        value = self._values.get(name)
        if value is None and "_" in name:
            first, *rest = name.split("_")
            value = self._values.get(first + "".join(word.capitalize() for word in rest))
        return value

    def __contains__(self, name: str) -> bool:
        return self._get(name) is not None

    def number(self, name: str) -> int:
        value = self._get(name)
        if value is None:
            return 0
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise unreadable(f"invalid character '{value[:1]}' looking for beginning of value") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _mistyped(value, "int64")
        if isinstance(value, float):
            raise unreadable(f"json: cannot unmarshal number {value} into Go value of type int64")
        return value

    def data(self, name: str) -> bytes:
        value = self._get(name)
        if value is None:
            return b""
        if not isinstance(value, str):
            raise _mistyped(value, "[]uint8")
        try:
            return b64decode(value, validate=True)
        except binascii.Error:
            raise unreadable(f"illegal base64 data at input byte {len(value) // 4 * 4}") from None

    def text(self, name: str) -> str:
        value = self._get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise _mistyped(value, "string")
        return value

    def flag(self, name: str) -> bool:
        value = self._get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise _mistyped(value, "bool")
        return value

    def choice(self, name: str, names: Sequence[str]) -> int:
        value = self._get(name)
        return 0 if value is None else _choice(value, names)

    def choices(self, name: str, names: Sequence[str]) -> list[int]:
        return [_choice(value, names) for value in self._list(name)]

    def message(self, name: str) -> Fields:
        return Fields(self._get(name))

    def messages(self, name: str) -> list[Fields]:
        return [Fields(value) for value in self._list(name)]

    def _list(self, name: str) -> list[object]:
        value = self._get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _mistyped(value, "[]json.RawMessage")
        return value


def _choice(value: object, names: Sequence[str]) -> int:
    if isinstance(value, int):
        return value
    if value in names:
        return names.index(str(value))
    raise unreadable(f"unknown value {json.dumps(value)} for enum")


_GO_KINDS = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def _mistyped(value: object, wanted: str) -> RpcError:
    return unreadable(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go value of type {wanted}")


def read_messages(body: bytes) -> tuple[list[Fields], RpcError | None]:
    """All messages of a body, up to the first that cannot be read; and why it cannot."""
    text = body.decode("utf-8", "replace").strip()
    messages: list[Fields] = []
    while text:
        try:
            value, end = _decode(text)
            messages.append(Fields(value))
        except RpcError as error:
            return messages, error
        except json.JSONDecodeError as error:
            return messages, unreadable(_complaint(error, text))
        text = text[end:].lstrip()
    return messages, None


def _complaint(error: json.JSONDecodeError, text: str) -> str:
    """What Go says of it."""
    if error.pos >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected EOF"
    return f"invalid character '{text[error.pos]}' looking for beginning of value"


def read_message(body: bytes) -> Fields:
    """The first message of a body; an empty one, if there is none."""
    messages, error = read_messages(body)
    if messages:
        return messages[0]
    if error is not None:
        raise error
    return Fields(None)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def present(**fields: object) -> Json:
    """The fields that are not zero: numbers as text, bytes as base64."""
    found: Json = {}
    for name, value in fields.items():
        if isinstance(value, bool):
            if value:
                found[name] = value
        elif isinstance(value, int):
            if value:
                found[name] = str(value)
        elif isinstance(value, bytes):
            if value:
                found[name] = base64(value)
        elif value or isinstance(value, dict):
            found[name] = value
    return found


def write(message: Json) -> str:
    return json.dumps(message, separators=(",", ":"))
