"""`holdfast run NAME -- COMMAND…`: a command under a lock."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from .engine_choice import announce_default_engine, chosen_url
from .options import SECONDS, CliContext, engine_options, quiet_option

if TYPE_CHECKING:
    from .runner.request import RunRequest


class RunCommand(click.Command):
    """Finds where the command begins: after `--`, or with the first argument after NAME if there is no `--`."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        command: list[str] = []
        if "--" in arguments:
            cut = arguments.index("--")
            arguments, command = arguments[:cut], arguments[cut + 1 :]
        else:
            context.allow_interspersed_args = False
        rest = super().parse_args(context, arguments)
        context.params["command"] += tuple(command)
        if not context.params["command"]:
            raise click.UsageError("there is no command to run; put it after --", context)
        return rest


@click.command(cls=RunCommand, options_metavar="[OPTIONS]")
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--ttl", type=SECONDS, default=30.0, show_default=True, help="How long a grant is valid without renewal.")
@click.option("--timeout", type=SECONDS, help="How long to wait.  [default: for ever; not at all with skip and fail]")
@click.option(
    "--busy",
    type=click.Choice(["wait", "skip", "fail"]),
    default="wait",
    show_default=True,
    help="If the lock is not free: wait; skip (exit 0); or fail (exit 75).",
)
@click.option("--max-hold", type=SECONDS, help="Stop COMMAND after it has held the lock for this long.")
@click.option(
    "--hold-at-least",
    type=SECONDS,
    default=0.0,
    help="Keep the lock for this long after the grant, even if COMMAND ends sooner: for jobs that machines "
    "with different clocks start at the same time.",
)
@click.option(
    "--lock-delay",
    type=SECONDS,
    default=0.0,
    help="Keep the name locked for this long after a hold that did not end cleanly: for resources without a fence.",
)
@click.option("--shared", is_flag=True, help="Read side of a read-write lock: shared with other --shared holders.")
@click.option("--exclusive", is_flag=True, help="Write side of a read-write lock: excludes all --shared holders.")
@click.option("--permits", type=click.IntRange(min=1), help="A semaphore: this many holders at a time.")
@click.option(
    "--grace",
    type=SECONDS,
    help="Time from TERM to KILL when the lock is lost.  [default: a fifth of the ttl, at most 5]",
)
@click.option("--request-timeout", type=SECONDS, default=5.0, show_default=True, help="Of one request to the engine.")
@click.option("--trace", is_flag=True, help="Make OpenTelemetry spans, and hand their context to COMMAND.")
@engine_options
@quiet_option
@click.pass_context
def run(
    context: click.Context,
    name: str,
    command: tuple[str, ...],
    ttl: float,
    timeout: float | None,
    busy: str,
    max_hold: float | None,
    hold_at_least: float,
    lock_delay: float,
    shared: bool,
    exclusive: bool,
    permits: int | None,
    grace: float | None,
    request_timeout: float,
    trace: bool,
    url: str | None,
    namespace: str,
    quiet: bool,
) -> int:
    """Run COMMAND while holding the lock NAME.

    The lock is renewed for as long as COMMAND runs and released when it and its process group have ended. If the lock
    is lost all the same, COMMAND is told to stop (TERM, and KILL after --grace) before anybody else can hold it.
    Signals are passed on. COMMAND finds HOLDFAST_NAME, HOLDFAST_TOKEN, HOLDFAST_SEQUENCER and HOLDFAST_URL in its
    environment: hand the token to a fence. With --trace it also finds TRACEPARENT.

    \b
    Examples:
      holdfast run reports/nightly -- ./nightly.sh
      holdfast run --busy skip cron/hourly -- ./hourly.sh      already running: fine
      holdfast run --timeout 5m deploy -- make deploy          exit 75 if it takes longer
      holdfast run --permits 3 transcode -- ffmpeg -i in out   three at a time
      holdfast run --max-hold 1h backup -- ./backup.sh         stopped after an hour
      holdfast run --hold-at-least 1m cron/report -- ./report  once a minute, though clocks differ

    \b
    Exit code: COMMAND's own, or 128 + N if signal N ended it;
      75 not acquired   76 lease lost   69 engine unavailable
      64 bad usage     126 not executable   127 not found
    """
    if not hasattr(os, "fork"):
        raise click.UsageError("run needs a POSIX system: process groups, signals, fork", context)

    from .runner.hold_trace import check_tracing
    from .runner.request import RunRequest, default_grace
    from .runner.supervisor import Supervisor

    if sum((shared, exclusive, permits is not None)) > 1:
        raise click.UsageError("--shared, --exclusive and --permits exclude each other", context)
    if timeout is None and busy != "wait":
        timeout = 0.0
    request = RunRequest(
        name=name,
        command=command,
        url=chosen_url(url),
        namespace=namespace,
        ttl=ttl,
        timeout=timeout,
        skip=busy == "skip",
        max_hold=max_hold,
        hold_at_least=hold_at_least,
        lock_delay=lock_delay,
        mode="read" if shared else "write" if exclusive else "lock" if permits is None else "permit",
        permits=permits or 1,
        grace=default_grace(ttl) if grace is None else grace,
        request_timeout=request_timeout,
        quiet=quiet,
        trace=trace,
    )
    if trace:
        check_tracing()
    announce_default_engine(url, quiet)
    if not quiet and timeout != 0:
        _say_if_nested(request)
    cli_context = context.find_object(CliContext) or CliContext()
    return Supervisor(request, _report, cli_context.debug).run()


def _say_if_nested(request: RunRequest) -> None:
    """Warn of a script that acquires its own lock again: it would wait for ever without a reason on the screen."""
    above = os.environ.get("HOLDFAST_NAME"), os.environ.get("HOLDFAST_URL")
    if above == (request.name, request.url) and request.mode in ("lock", "write"):
        _report(
            f"{request.name!r} is held by the command that this one runs in (HOLDFAST_NAME): waiting for it would "
            "never end; use another name, or take it only once"
        )


def _report(text: str) -> None:
    try:
        sys.stderr.write(f"holdfast: {text}\n")
        sys.stderr.flush()
    except OSError:  # the terminal is gone; the command need not be
        pass
