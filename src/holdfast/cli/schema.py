"""`holdfast schema`: what holdfast needs in a database, to be created by hand where that is the rule."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec

import click

from ..backends import SCHEMES
from ..errors import Misconfigured
from ..settings import default_url
from .common import engine_options, json_option, print_json


@click.command()
@click.argument("engine", required=False)
@click.option("--fence", is_flag=True, help="The table of the fence, for the database of the fenced rows.")
@engine_options
@json_option
def schema(engine: str | None, fence: bool, url: str | None, namespace: str, as_json: bool) -> None:
    """Print the DDL of ENGINE (default: the engine of --url).

    holdfast creates its tables on first use where it may. Where it may not, let your migrations do it.

    \b
    Examples:
      holdfast schema
      holdfast schema sqlite > migrations/0001_holdfast.sql
      holdfast schema --fence sqlite
    """
    scheme = engine or (url or default_url()).partition("://")[0]
    module = SCHEMES.get(scheme) or SCHEMES.get(scheme.partition("+")[0])
    if module is None:
        raise Misconfigured(f"there is no engine {scheme!r}; there are: {', '.join(sorted(SCHEMES))}")
    family = module.split(".")[-2]
    ddl = fence_ddl(family) if fence else engine_ddl(module)
    if as_json:
        print_json({"engine": family, "fence": fence, "ddl": ddl})
    elif ddl is None:
        click.echo(f"{family} has no {'fence' if fence else 'schema'}: there is nothing to create", err=True)
    else:
        click.echo(ddl, nl=not ddl.endswith("\n"))


def engine_ddl(module: str) -> str | None:
    """The engine's `schema.sql`, with its comments."""
    file = files(module.rpartition(".")[0]).joinpath("schema.sql")
    return file.read_text() if file.is_file() else None


def fence_ddl(engine: str) -> str | None:
    """The DDL that the fence of this engine tells of itself."""
    package = f"holdfast.fenced.{engine}"
    if find_spec(package) is None or find_spec(f"{package}.programs") is None:
        return None
    ddl: str = import_module(f"{package}.programs").schema()
    return ddl
