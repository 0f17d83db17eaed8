"""The programs that run at each node, and how a call to one is written (see `backends.redis.programs`)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from ..redis.programs import Program
from ..redis.resp import bulks
from .fanout import Fanout, Parts

HOT = ("take", "release", "extend", "leave")
"""What every node is taught on connecting, so that no vote waits for it, and what is sent without
waiting for a reply is understood."""


@cache
def source(verb: str) -> str:
    """The source of a program, with what it includes."""
    folder = files(__package__) / "scripts"
    text = (folder / f"{verb}.lua").read_text("utf-8")
    return re.sub(r"^-- include (\w+)$", lambda found: source(found[1]), text, flags=re.MULTILINE)


@cache
def program(verb: str) -> Program:
    return Program(source(verb))


@cache
def _head(verb: str, count: int) -> bytes:
    return program(verb).call(count)


def words_of(request: Fanout) -> tuple[int, bytes]:
    """The words after the program, and how many there are."""
    words = (str(len(request.keys)), *request.keys, *request.args)
    text = "".join([f"${len(word)}\r\n{word}\r\n" for word in words])
    return len(words), text.encode() if text.isascii() else bulks(*words)


def parts(verb: str, marks: str, *args: str) -> Parts:
    """How a call with two keys is written: up to the size of the first, and from its end to the size of the last word.

    The second key is that of the marks; `args` are all arguments but the last.
    """
    head = f"{(_head(verb, len(args) + 4) + bulks('2')).decode()}$"
    return head, f"\r\n{bulks(marks, *args).decode()}$"


def frame(request: Fanout) -> bytes:
    """The call, by the hash of its program."""
    if request.parts is not None:
        (head, rest), key, last = request.parts, request.keys[0], request.args[-1]
        text = f"{head}{len(key)}\r\n{key}{rest}{len(last)}\r\n{last}\r\n"
        if text.isascii():
            return text.encode()
    count, words = words_of(request)
    return _head(request.verb, count) + words


def frame_with_source(request: Fanout) -> bytes:
    """The call, for a node that does not know the program."""
    count, words = words_of(request)
    return program(request.verb).call_with_source(count) + words
