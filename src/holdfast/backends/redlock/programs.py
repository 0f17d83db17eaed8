"""The programs that run at each node, and how a call to one is written (see `backends.redis.programs`)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from ..redis.programs import Program
from ..redis.resp import bulks
from .fanout import Fanout

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


def head(verb: str, keys: tuple[str, ...], args: tuple[str, ...]) -> str:
    """How a call with these keys is written, up to the size of one more argument after these."""
    words = (str(len(keys)), *keys, *args)
    return f"{(_head(verb, len(words) + 1) + bulks(*words)).decode()}$"


def frame(request: Fanout) -> bytes:
    """The call, by the hash of its program."""
    if request.head and (last := request.args[-1]).isascii():
        return f"{request.head}{len(last)}\r\n{last}\r\n".encode()
    count, words = words_of(request)
    return _head(request.verb, count) + words


def frame_with_source(request: Fanout) -> bytes:
    """The call, for a node that does not know the program."""
    count, words = words_of(request)
    return program(request.verb).call_with_source(count) + words
