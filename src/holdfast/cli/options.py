"""What the commands share: the options that choose an engine, durations, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ..errors import Misconfigured

F = TypeVar("F", bound=Callable[..., object])


@dataclass(slots=True)
class CliContext:
    """The settings of one call of the command line."""

    debug: bool = False


class Seconds(click.ParamType[float]):
    """A duration: a number of seconds, or one with a unit (500ms, 90s, 5m, 2h)."""

    name = "seconds"
    UNITS = (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0))

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value).strip()
        for unit, seconds in self.UNITS:
            if text.endswith(unit):
                text, factor = text.removesuffix(unit), seconds
                break
        else:
            factor = 1.0
        try:
            number = float(text) * factor
        except ValueError:
            number = float("nan")
        if not 0 <= number < float("inf"):
            self.fail(
                f"{value!r} is not a duration; give seconds, as in 30, 1.5, 500ms, 5m or 2h",
                parameter,
                context,
            )
        return number


SECONDS = Seconds()


def debug_option(command: F) -> F:
    """--debug, for every command that talks to an engine."""
    option = click.option("--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks.")
    return option(command)


def namespace_option(command: F) -> F:
    """--namespace, for the same."""
    text = "Prefix of all names: keeps applications apart."
    return click.option("--namespace", default="holdfast", show_default=True, help=text)(command)


def engine_options(command: F) -> F:
    """--url, --namespace and --debug, for every command that uses the default engine if none is named."""
    text = "The engine.  [default: $HOLDFAST_URL, or a file of this user]"
    return click.option("--url", metavar="URL", help=text)(namespace_option(debug_option(command)))


def quiet_option(command: F) -> F:
    """--quiet, for every command that prints notices on stderr."""
    return click.option("--quiet", "-q", is_flag=True, help="Print only errors on stderr.")(command)


def json_option(command: F) -> F:
    """--json, for every command that prints results."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def listen_address(listen: str, example: str) -> tuple[str, int]:
    """HOST:PORT of --listen."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise Misconfigured(f"--listen is {listen!r}; give a host and a port, as in {example}")
    return host.strip("[]"), int(port)


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and (cli_context := context.find_object(CliContext)) is not None:
        cli_context.debug = True


def print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))
