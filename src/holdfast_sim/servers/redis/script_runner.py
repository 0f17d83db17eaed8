"""EVAL and EVALSHA of holdfast's own programs, which are modelled in Python; another program is refused.

1. A server knows by hash what it was sent (EVAL, SCRIPT LOAD) since it was started or told to forget (SCRIPT FLUSH).
2. A program whose first line allows it runs on a full server. A server before Redis 7 cannot read that line.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from typing import TYPE_CHECKING

from holdfast.backends.redis import programs as queue_sources
from holdfast.backends.redlock import programs as redlock_sources

from . import key_commands, queue_programs, record_programs, redlock_programs
from .command_table import COMMANDS
from .protocol import ErrorReply, Reply, Status
from .script_run import Model, Run

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession


SHA_DIGITS_COUNT = 40
NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL."


@cache
def models() -> dict[bytes, Model]:
    """Our programs, by their source."""
    known: dict[bytes, Model] = {}
    for verb, model in (queue_programs.MODELS | record_programs.MODELS).items():
        program = queue_sources.program(verb)
        known[program.source] = model
        if program.plain is not None:
            known[program.plain.source] = model
    for verb, model in redlock_programs.MODELS.items():
        known[redlock_sources.program(verb).source] = model
    return known


def _compile(server: RedisServer, source: bytes) -> str:
    """Learn a program; answers with its hash."""
    if source.startswith(b"#!") and server.version_numbers < (7,):
        raise ErrorReply("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'")
    if source not in models():
        raise ErrorReply("ERR this server is a model, and runs the programs of holdfast only")
    sha = sha1(source, usedforsecurity=False).hexdigest()
    server.scripts[sha] = source
    return sha


def evaluate(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    keys, args = _keys_and_args(words)
    return _run(server, session, _compile(server, words[1]), keys, args)


def evaluate_sha(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    sha = words[1].decode("latin-1").lower()
    if len(sha) != SHA_DIGITS_COUNT:
        raise ErrorReply(NO_SCRIPT)
    keys, args = _keys_and_args(words)
    if sha not in server.scripts:
        raise ErrorReply(NO_SCRIPT)
    return _run(server, session, sha, keys, args)


def _keys_and_args(words: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    count = key_commands.integer(words[2])
    if count > len(words) - 3:
        raise ErrorReply("ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise ErrorReply("ERR Number of keys can't be negative")
    return words[3 : 3 + count], words[3 + count :]


def _run(server: RedisServer, session: RedisSession, sha: str, keys: list[bytes], args: list[bytes]) -> Reply:
    source = server.scripts[sha]
    flagged = source.startswith(b"#!")
    if flagged:
        server.check_write(COMMANDS["set"].flags)
    try:
        return models()[source](Run(server, session, keys, args, allow_full=flagged))
    except ErrorReply as error:
        # The number of the line is not modelled.
        return ErrorReply(f"{error} script: {sha}, on @user_script:1.")


def script(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    match words[1].lower():
        case b"load":
            return _compile(server, words[2]).encode()
        case b"exists":
            return [int(word.decode("latin-1").lower() in server.scripts) for word in words[2:]]
        case _:
            if len(words) > 3 or (len(words) == 3 and words[2].lower() not in (b"sync", b"async")):
                raise ErrorReply("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
            server.scripts.clear()
            return Status("OK")


HANDLERS = {
    "eval": evaluate,
    "evalsha": evaluate_sha,
    "script|exists": script,
    "script|flush": script,
    "script|load": script,
}
