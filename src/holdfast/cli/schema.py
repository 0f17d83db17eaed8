"""`holdfast schema`: what an engine needs in its database, to be created by hand where that is the rule."""

from __future__ import annotations

from importlib.resources import files

import click

from ..backends import SCHEMES
from ..errors import Misconfigured
from ..settings import default_url
from .common import engine_options, json_option, print_json


@click.command()
@click.argument("engine", required=False)
@engine_options
@json_option
def schema(engine: str | None, url: str | None, namespace: str, as_json: bool) -> None:
    """Print the DDL of ENGINE, or of the engine of --url.

    holdfast creates its tables on first use where it may. Where it may not, let your migrations do it.

    \b
    Examples:
      holdfast schema
      holdfast schema sqlite > migrations/0001_holdfast.sql
    """
    scheme = engine or (url or default_url()).partition("://")[0]
    family = scheme.partition("+")[0]
    if family not in SCHEMES:
        raise Misconfigured(f"there is no engine {scheme!r}; there are: {', '.join(sorted(SCHEMES))}")
    ddl = ddl_of(family)
    if as_json:
        print_json({"engine": family, "ddl": ddl})
    elif ddl is None:
        click.echo(f"{family} has no schema: there is nothing to create", err=True)
    else:
        click.echo(ddl, nl=not ddl.endswith("\n"))


def ddl_of(engine: str) -> str | None:
    """The engine's `schema.sql`, with its comments."""
    package = SCHEMES[engine].rpartition(".")[0]
    file = files(package).joinpath("schema.sql")
    return file.read_text() if file.is_file() else None
