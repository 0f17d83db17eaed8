"""`holdfast schema`: the tables that holdfast needs, for databases where only migrations may create them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import click

from ..backends import SCHEMES
from ..errors import Misconfigured
from ..settings import default_url
from .options import engine_options, json_option, print_json


@click.command()
@click.argument("engine", required=False)
@click.option("--fence", is_flag=True, help="The table of the fence, for the database of the fenced rows.")
@click.option("--log", is_flag=True, help="The tables of the event log, for the database of the rows it goes with.")
@click.option("--once", is_flag=True, help="The table of `holdfast.sql.Once`, for the database of the effects.")
@engine_options
@json_option
def schema(
    engine: str | None, fence: bool, log: bool, once: bool, url: str | None, namespace: str, as_json: bool
) -> None:
    """Print the DDL of ENGINE (default: the engine of --url).

    holdfast creates its tables on first use where it may. Where it may not, let your migrations do it.

    \b
    Examples:
      holdfast schema
      holdfast schema sqlite > migrations/0001_holdfast.sql
      holdfast schema --fence sqlite
      holdfast schema --log postgresql
      holdfast schema --once mysql
    """
    if fence + log + once > 1:
        raise Misconfigured("schema takes one of --fence, --log and --once; call it for each")
    scheme = engine or (url or default_url()).partition("://")[0]
    module = SCHEMES.get(scheme) or SCHEMES.get(scheme.partition("+")[0])
    if module is None:
        raise Misconfigured(f"there is no engine {scheme!r}; there are: {', '.join(sorted(SCHEMES))}")
    folder = module.split(".")[2]
    if once:
        from ..sql.once_schema import DIALECTS  # not at the top: `holdfast run` needs no database library
        from ..sql.once_schema import schema as once_schema

        ddl = once_schema(folder) if folder in DIALECTS else None
    else:
        module = f"holdfast.{'fenced' if fence else 'log' if log else 'backends'}.{folder}.programs"
        ddl = told_by(module)
        if fence and ddl is not None and (refusals := told_by(module, "refusal_schema")) is not None:
            ddl = f"{ddl.rstrip()}\n\n{refusals}"
    if as_json:
        more = {name: True for name, asked in (("log", log), ("once", once)) if asked}
        print_json({"engine": folder, "fence": fence, **more, "ddl": ddl})
    elif ddl is None:
        click.echo(f"{_without(folder, fence, log, once)}: there is nothing to create", err=True)
    else:
        click.echo(ddl, nl=not ddl.endswith("\n"))


def _without(folder: str, fence: bool, log: bool, once: bool) -> str:
    if once:
        from ..sql.once_schema import DIALECTS

        return f"{folder} has no transactions for `holdfast.sql.Once`; there are: {', '.join(DIALECTS)}"
    if log:
        return f"there is no event log on {folder}"
    if not fence:
        return f"{folder} has no schema"
    has_one = find_spec(f"holdfast.fenced.{folder}") is not None
    return f"the fence of {folder} needs no schema" if has_one else f"{folder} has no fence"


def told_by(module: str, function: str = "schema") -> str | None:
    """The DDL of an engine, of its fence or of its event log: the `schema()` of its programs."""
    if find_spec(module.rpartition(".")[0]) is None or find_spec(module) is None:
        return None
    tell: Callable[[], str] | None = getattr(import_module(module), function, None)
    return None if tell is None else tell()
