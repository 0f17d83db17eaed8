"""Which engine a command works on, and saying so when nobody has named it.

1. `--url`, or `$HOLDFAST_URL`, or a file of this user. The last one is for this machine only, so it is said on stderr
   that it was chosen: two machines whose cron jobs have no HOLDFAST_URL would each lock a file of their own.
2. Commands that look (`ls`, `watch`, `evict`, `spec`) never create a named file: a mistyped path is an error.
3. A URL is shown without its passwords, and handed on to a command with them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

import click

from .. import Coordinator, connect
from ..backends.sqlite.address import path_of
from ..errors import Misconfigured
from ..settings import default_url


def named(url: str | None) -> bool:
    """Whether somebody has said which engine it is to be."""
    return url is not None or "HOLDFAST_URL" in os.environ


def chosen_url(url: str | None) -> str:
    """The URL of the engine, good for a command that runs elsewhere: the path of a file is absolute."""
    chosen = default_url() if url is None else url
    file = sqlite_file(chosen)
    return chosen if file is None else "sqlite://" + quote(str(file))


def sqlite_file(url: str) -> Path | None:
    """The file of an embedded engine; None for any other."""
    return path_of(url) if url.startswith("sqlite://") else None


def discreet(url: str) -> str:
    """A URL that can be shown: without its passwords, in the address or among the options."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" or not separator:
        return url
    address, question, options = rest.partition("?")
    hosts = ",".join(_without_password(host) for host in address.split(","))
    return scheme + separator + hosts + question + re.sub(r"((?:^|&)[^=&]*pass[^=&]*=)[^&]*", r"\1…", options)


def _without_password(host: str) -> str:
    """`user:password@host` without the password, which may hold any sign that should have been escaped."""
    login, at, rest = host.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{user}:…@{rest}" if colon else login + at + rest


def say_which(url: str | None, quiet: bool) -> None:
    """Say on stderr which engine is used, if nobody has named one."""
    if not quiet and not named(url):
        click.echo(
            f"holdfast: no engine was named; using {discreet(chosen_url(url))}, which locks on this machine only "
            "(name one with --url or HOLDFAST_URL, or say --quiet)",
            err=True,
        )


def coordinator_to_look(url: str | None, namespace: str, quiet: bool) -> Coordinator | None:
    """A coordinator for a command that only looks; None if the file of this user has never been used."""
    say_which(url, quiet)
    chosen = chosen_url(url)
    file = sqlite_file(chosen)
    if file is not None and not file.exists():
        if named(url):
            raise Misconfigured(
                f"there is no lock file {str(file)!r}: nothing was ever locked there, or the path is wrong"
            )
        return None
    return connect(chosen, namespace=namespace)
