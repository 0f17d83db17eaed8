"""Which engine a command uses, and the notice on stderr when it is the default.

1. `--url`, or `$HOLDFAST_URL`, or a file of this user. The file locks on this machine only, so its use is announced on
   stderr: two machines whose cron jobs have no HOLDFAST_URL would each lock a file of their own.
2. Commands that only read (`ls`, `watch`, `evict`, `ask`) never create a named file: a mistyped path is an error.
3. A URL is shown without its passwords, and passed to a command with them.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from .. import Coordinator, connect
from ..backends.sqlite.address import path_of, url_of
from ..errors import Misconfigured
from ..settings import default_url, without_passwords


def named(url: str | None) -> bool:
    """Whether the user has named an engine."""
    return url is not None or "HOLDFAST_URL" in os.environ


def chosen_url(url: str | None) -> str:
    """The URL of the engine. The path of a file is absolute, so that a command in another folder can use it."""
    chosen = default_url() if url is None else url
    file = sqlite_file(chosen)
    return chosen if file is None else url_of(file)


def sqlite_file(url: str) -> Path | None:
    """The file of an embedded engine; None for any other."""
    return path_of(url) if url.startswith("sqlite://") else None


def announce_default_engine(url: str | None, quiet: bool) -> None:
    """Say on stderr which engine is used, if the user has not named one."""
    if not quiet and not named(url):
        click.echo(
            f"holdfast: no engine was named; using {without_passwords(chosen_url(url))}, "
            "which locks on this machine only (name one with --url or HOLDFAST_URL, or say --quiet)",
            err=True,
        )


def coordinator_for_viewing(url: str | None, namespace: str, quiet: bool) -> Coordinator | None:
    """A coordinator for a command that only reads; None if the file of this user has never been used."""
    announce_default_engine(url, quiet)
    chosen = chosen_url(url)
    file = sqlite_file(chosen)
    if file is not None and not file.exists():
        if named(url):
            raise Misconfigured(
                f"there is no lock file {str(file)!r}: nothing was ever locked there, or the path is wrong"
            )
        return None
    return connect(chosen, namespace=namespace)
