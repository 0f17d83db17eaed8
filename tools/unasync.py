"""Write the thread version of the modules whose source is the asyncio version.

    python tools/unasync.py            write the generated files (`make generate`)
    python tools/unasync.py --check    write nothing; name the files that differ from their source and end with 1

1. `PAIRS` names each source and the file that is made from it. A generated file says so in its first line.
2. Code is changed token by token: `async` and `await` go; `NAMES` and `ASYNCIO` give the counterpart of a name; the
   prefix `Async` goes; `Awaitable[T]` and `Coroutine[Any, Any, T]` become `T`. A name of `asyncio` without a
   counterpart is an error, and so is anything else that has no meaning in a thread.
3. Docstrings and comments are changed by `PHRASES`, then by `WORDS`. An example that is wrapped into `async def main()`
   is unwrapped. Other strings stay as they are, apart from a lone class name ("AsyncRedisFence").
4. ruff removes the imports that are no longer needed, sorts the others and formats the file.
5. A statement of one line that is marked `# asyncio only` is left out.
6. What differs in behaviour is not made here. It stands, by hand, in modules of the same name in both rooms (ADR 0060).
"""

from __future__ import annotations

import re
import subprocess
import sys
import token as kinds
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tokenize import TokenInfo, generate_tokens

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/holdfast")

PAIRS = {
    PACKAGE / source: PACKAGE / target
    for source, target in {
        **{f"aio/{name}.py": f"sync/{name}.py" for name in ("coordinator", "election", "lease", "limiter")},
        **{f"aio/{name}.py": f"sync/{name}.py" for name in ("attempt", "lock", "multi", "once", "recovery", "rwlock")},
        **{f"aio/{name}.py": f"sync/{name}.py" for name in ("activation", "actor_loop", "actor_system")},
        **{f"aio/{name}.py": f"sync/{name}.py" for name in ("member_loop", "partitions", "shard_hooks")},
        **{f"sql/aio/{name}.py": f"sql/sync/{name}.py" for name in ("fence", "helpers", "once")},
        **{f"log/aio/{name}.py": f"log/sync/{name}.py" for name in ("consumer", "helpers", "relay")},
        **{f"cas/aio/{name}.py": f"cas/sync/{name}.py" for name in ("register", "registers")},
        **{f"fenced/{name}/async_fence.py": f"fenced/{name}/fence.py" for name in ("etcd", "redis")},
    }.items()
}

NAMES = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "check_asyncio_client": "check_blocking_client",
    "check_awaited": "check_blocking",
    "check_awaited_body": "check_body",
}
ASYNCIO = {"Event": "threading.Event", "current_task": "threading.get_ident", "sleep": "time.sleep"}
"""What stands for `asyncio.NAME`."""
ONLY = re.compile(r"^.*[ ]{2}# asyncio only\n", re.MULTILINE)
KEYWORDS = {"awaits": ("True", "False")}
"""Keyword arguments whose value depends on the colour."""

PHRASES = {
    "Made by `holdfast.aio.connect`; belongs to the loop that it was made in.": (
        "Made by `holdfast.connect`; safe to share between threads."
    ),
    "The lease is the leadership: as `async with`, its body is cancelled in time.": (
        "The lease is the leadership: stop as soon as `lease.lost` is set."
    ),
    "Lead until `body(lease)` returns; it is cancelled when leadership is lost, and then we campaign again.": (
        "Lead until `body(lease)` returns; campaign again whenever the leadership was lost."
    ),
    "A third of the ttl is kept free for the body to end in, before another leader can begin.": (
        "The body must return (or raise) soon after `lease.lost` is set: a third of the ttl is kept free for that."
    ),
    "a campaign ends, and None is returned": "a campaign ends within seconds, and None is returned",
    "Have `hook(lease)` called, plain or async, when somebody asks for the lock; now, if that was before.": (
        "Have `hook(lease)` called, on a thread of its own, when somebody asks for the lock (now, if one has)."
    ),
    "of a coroutine function; `Misconfigured` for a plain or generator function": (
        "of a plain function; `Misconfigured` for a coroutine or generator function"
    ),
    "on an asyncio connection of psycopg, SQLAlchemy, asyncmy or aiosqlite": (
        "on a connection of psycopg, SQLAlchemy, PyMySQL or sqlite3"
    ),
    "for asyncio connections": "for blocking connections",
    "through an asyncio client of redis-py (`redis.asyncio.Redis` or `RedisCluster`)": (
        "through a blocking client of redis-py (`redis.Redis` or `redis.RedisCluster`)"
    ),
    "through a client of redis-py for asyncio (`redis.asyncio.Redis` or `RedisCluster`)": (
        "through a client of redis-py (`redis.Redis` or `redis.RedisCluster`)"
    ),
    "A coroutine function is awaited, any other (`holdfast.fenced.etcd.gateway`) is called in a thread.": (
        "`holdfast.fenced.etcd.gateway` makes one."
    ),
    "kazoo blocks and has no asyncio: there each request runs in a thread": "kazoo has no asyncio; see `cas.aio.ZNode`",
    "A file, replaced as a whole; in asyncio each request runs in a thread.": "A file, replaced as a whole.",
    "EtcdKey(transact,": 'EtcdKey(gateway("http://127.0.0.1:2379"),',
    "AsyncRedisFence(redis.asyncio.Redis())": "RedisFence(redis.Redis())",
    "through a function that is awaited": "through a function that blocks",
    "AsyncEtcdFence(transact)": 'EtcdFence(gateway("http://127.0.0.1:2379"))',
    "before each call of a coroutine function": "before each call of a plain function",
    "Do each call of a coroutine function once": "Do each call of a plain function once",
}
WORDS = (
    (r"\bimport asyncio, holdfast\.aio\b", "import holdfast"),
    (r"\bholdfast\.aio\b", "holdfast"),
    (r"\basync (?=with\b|def\b|for\b)", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\btask(s?)\b", r"thread\1"),
)
EXAMPLE = re.compile(
    r"""^(?P<margin>[ ]*)>>>\ async\ def\ main\(\).*:\n
        (?P<body>(?:[ ]*\.\.\.[ ]{5}.*\n)+)
        [ ]*>>>\ asyncio\.run\(main\(\)\)\n""",
    re.MULTILINE | re.VERBOSE,
)


class Refused(Exception):
    """The source cannot be turned into a thread version as it stands."""


def generate(source: Path) -> str:
    """The text of the generated file."""
    header = f"# Generated from {source.as_posix()} by `make generate`: change that file, not this one.\n"
    return _ruff(header + convert((ROOT / source).read_text("utf-8"), source.as_posix()), ROOT / PAIRS[source])


def convert(text: str, name: str = "<text>") -> str:
    """The thread version of a module, before ruff has seen it."""
    text = ONLY.sub("", text)
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pieces: list[str] = []
    done = 0
    for (first, last), replacement in _edits(_tokens(text), name):
        start, end = starts[first[0] - 1] + first[1], starts[last[0] - 1] + last[1]
        pieces += (text[done:start], replacement)
        done = end
    return "".join([*pieces, text[done:]])


Span = tuple[tuple[int, int], tuple[int, int]]


def _tokens(text: str) -> list[TokenInfo]:
    """All tokens but those inside of f-strings, which Python 3.11 does not show: what is there stays as it is."""
    found: list[TokenInfo] = []
    depth = 0
    for each in generate_tokens(StringIO(text).readline):
        depth -= each.type == getattr(kinds, "FSTRING_END", -1)
        if depth == 0:
            found.append(each)
        depth += each.type == getattr(kinds, "FSTRING_START", -1)
    return found


def _edits(tokens: list[TokenInfo], name: str) -> Iterator[tuple[Span, str]]:
    """What to replace, in the order of the text."""
    at, end = 0, len(tokens)
    closing: set[int] = set()  # brackets of an `Awaitable[…]` that is opened
    begins = True
    while at < end:
        this = tokens[at]
        text = this.string
        follows = [each.string for each in tokens[at + 1 : at + 7]]
        if this.type == kinds.STRING and begins:
            yield (this.start, this.end), _prose(text)
        elif this.type == kinds.STRING:
            if (bare := re.fullmatch(r'"Async([A-Z]\w*)"', text)) is not None:
                yield (this.start, this.end), f'"{bare[1]}"'
        elif this.type == kinds.COMMENT:
            yield (this.start, this.end), _prose(text)
        elif this.type == kinds.OP and at in closing:
            yield (this.start, this.end), ""
        elif this.type == kinds.NAME:
            if text == "await" or (text == "async" and follows[0] in ("def", "with", "for")):
                yield (this.start, tokens[at + 1].start), ""
            elif text == "import" and follows[0] == "asyncio":
                yield (this.start, tokens[at + 1].end), "import threading\nimport time"
                at += 1
            elif text == "asyncio":
                if follows[0] != "." or follows[1] not in ASYNCIO:
                    raise Refused(f"{name}:{this.start[0]}: asyncio{''.join(follows[:2])} has no counterpart: rule 2")
                yield (this.start, tokens[at + 2].end), ASYNCIO[follows[1]]
                at += 2
            elif text == "Awaitable" and follows[0] == "[":
                closing.add(_closing(tokens, at + 1))
                yield (this.start, tokens[at + 1].end), ""
                at += 1
            elif text == "Coroutine" and follows[:5] == ["[", "Any", ",", "Any", ","]:
                closing.add(_closing(tokens, at + 1))
                yield (this.start, tokens[at + 6].start), ""
                at += 5
            elif text in KEYWORDS and follows[:2] == ["=", KEYWORDS[text][0]]:
                yield (tokens[at + 2].start, tokens[at + 2].end), KEYWORDS[text][1]
                at += 2
            elif text in NAMES:
                yield (this.start, this.end), NAMES[text]
            elif re.match(r"Async[A-Z]", text):
                yield (this.start, this.end), text.removeprefix("Async")
        if this.type not in (kinds.COMMENT, kinds.NL):
            begins = this.type in (kinds.NEWLINE, kinds.INDENT, kinds.DEDENT)
        at += 1


def _closing(tokens: list[TokenInfo], opening: int) -> int:
    """Where the bracket at `opening` is closed."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].string in ("[", "(", "{")) - (tokens[at].string in ("]", ")", "}"))
        if depth == 0:
            return at
    raise AssertionError("tokenize has seen all brackets closed")


def _prose(text: str) -> str:
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)
    text = EXAMPLE.sub(_unwrapped, text)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text


def _unwrapped(example: re.Match[str]) -> str:
    """The body of `async def main()`, as lines of a prompt: what it returns is shown."""
    margin = example["margin"]
    body = [line[len(margin) + 8 :] for line in example["body"].splitlines()]
    shown = (re.sub(r"^(\s*)return ", r"\1", line) if line is body[-1] else line for line in body)
    return "".join(f"{margin}{'...' if line[:1] == ' ' else '>>>'} {line}\n" for line in shown)


def _ruff(text: str, target: Path) -> str:
    for words in (["check", "--fix-only", "--select", "F401,I001"], ["format"]):
        command = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename", str(target), "-"]
        run = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", cwd=ROOT)
        if run.returncode != 0:
            raise Refused(f"{target}: ruff {words[0]} failed: {run.stderr.strip()}")
        text = run.stdout
    return text


def main(words: list[str]) -> int:
    """Write, or compare; answers with the exit code."""
    if words not in ([], ["--check"]):
        print("usage: python tools/unasync.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for source, target in PAIRS.items():
        text = generate(source)
        if not (ROOT / target).exists() or (ROOT / target).read_text("utf-8") != text:
            stale.append(target)
            if not words:
                (ROOT / target).write_text(text, "utf-8")
    for target in stale:
        print(f"{target.as_posix()}: {'written' if not words else 'not what its source says; run `make generate`'}")
    return 1 if stale and words else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as refused:
        sys.exit(f"unasync: {refused}")
