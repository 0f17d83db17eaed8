"""The values of COM_STMT_EXECUTE, in binary: text and numbers, which are all that our statements have."""

from __future__ import annotations

from holdfast.backends.mysql.packets import number_at

from .statement_texts import Value

TEXT, NUMBER = 0xFC, 0x08


def read_values(body: bytes, count: int) -> list[Value]:
    """`body` begins after the statement's number: flags (1), iterations (4), NULL bits, types, values."""
    at = 5 + (count + 7) // 8
    if body[at] != 1:
        raise NotImplementedError("the types of values are sent with every execution")
    kinds = body[at + 1 : at + 1 + 2 * count : 2]
    at += 1 + 2 * count
    values: list[Value] = []
    for kind in kinds:
        if kind == TEXT:
            size, at = number_at(body, at)
            values.append(body[at : at + size])
            at += size
        elif kind == NUMBER:
            values.append(int.from_bytes(body[at : at + 8], "little", signed=True))
            at += 8
        else:
            raise NotImplementedError(f"a value of type {kind}")
    return values
