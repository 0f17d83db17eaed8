"""The group of all commands, and the one place where errors become a line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

import click

from ..errors import HoldfastError
from . import exit_codes
from .actors import actors
from .advise.command import advise_command
from .ask import ask
from .board import board
from .console import console
from .demo.command import demo
from .doctor import doctor
from .error_messages import error_message
from .evict import evict
from .exporter import exporter
from .ls import ls
from .once import once
from .options import CliContext
from .partitions import partitions
from .refusals import refusals
from .rules import rules
from .run import run
from .schema import schema
from .torture import torture
from .watch import watch

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes of holdfast itself:
   0  done                          75  the lock was not acquired
   1  nothing to evict, ask, forget 76  the lease was lost; the command was stopped
  64  bad option, name or URL      126  the command is not executable
  69  the engine is unavailable    127  the command was not found
  74  cannot print: the disk is full
'run' passes on the command's own code, or 128 + N if signal N ended it.""",
)
@click.version_option(version("holdfast"), prog_name="holdfast", message="%(prog)s %(version)s")
def holdfast() -> None:
    """Locks between processes and machines, with a fencing token on every grant.

    The engine is --url, or $HOLDFAST_URL, or a file of this user on this machine.

    \b
    Examples:
      holdfast run reports/nightly -- ./nightly.sh    one at a time, everywhere
      holdfast ls                                     who holds what, who waits
      holdfast doctor                                 does the engine's setup keep locks?
      holdfast demo                                   why the fence is needed
      holdfast advise                                 is a lock what you need?
    """


for command in (
    run,
    ls,
    watch,
    ask,
    evict,
    once,
    partitions,
    actors,
    schema,
    rules,
    board,
    exporter,
    refusals,
    console,
    advise_command,
    doctor,
    demo,
    torture,
):
    holdfast.add_command(command)


def invoke(arguments: Sequence[str]) -> int:
    """Run the command line and answer with its exit code. Nothing leaves as a traceback, except with --debug."""
    cli_context = CliContext(debug=bool(os.environ.get("HOLDFAST_DEBUG")))
    try:
        with holdfast.make_context("holdfast", list(arguments), obj=cli_context) as context:
            code = holdfast.invoke(context)
        sys.stdout.flush()  # now, while a reader that has gone is told from a bug
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        return exit_codes.USAGE
    except click.ClickException as error:
        return _complain(cli_context, _usage(error), exit_codes.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.SIGNALLED + 2
    except HoldfastError as error:
        return _complain(cli_context, error_message(error), exit_codes.code_of(error))
    except BrokenPipeError:  # `holdfast ls | head`: nobody reads on, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.SIGNALLED + 13
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug(cli_context, error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not tried again
        return _complain(cli_context, f"the output cannot be written: {error.strerror}", exit_codes.OUTPUT)
    except ModuleNotFoundError:
        raise  # main knows whether the extra is missing
    except Exception as error:  # noqa: BLE001 - a bug, told as one
        return _bug(cli_context, error)
    return code if isinstance(code, int) else exit_codes.OK


def _bug(cli_context: CliContext, error: Exception) -> int:
    what = f"a bug in holdfast: {type(error).__name__}: {error}; --debug shows where"
    return _complain(cli_context, what, exit_codes.INTERNAL)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")
    if context is None:
        return message
    see = " See" if message.endswith("?") else "; see"
    return f"{message[:1].lower()}{message[1:]}{see} '{context.command_path} --help'"


def _complain(cli_context: CliContext, message: str, code: int) -> int:
    if cli_context.debug:
        traceback.print_exc()
    click.echo(f"holdfast: {' '.join(message.split())}", err=True)
    return code
