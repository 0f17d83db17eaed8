"""The demonstration on the screen: a timeline in columns, and the two counts. Lines fit into 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import ledger
from .controller import DemoRun, DemoStep

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"A": "cyan", "B": "magenta", "kernel": "bold red"}
KINDS = {"acknowledged": "bold", "refused": "bold green", "late": "yellow"}


def words(step: DemoStep) -> str:
    """What happened, in a sentence."""
    facts = step.facts
    match step.kind:
        case "asks":
            return f"asks for the lock {ledger.ACCOUNT} (ttl {facts['ttl']:g} s)"
        case "waits":
            return "is told that it is held, and waits in line"
        case "granted":
            return f"holds the lock, token {facts['token']}"
        case "read":
            first = "claims the account, then " if facts["claimed"] else ""
            return f"{first}reads the balance: {facts['balance']}"
        case "checked":
            return f"checks its lease: good for {facts['remaining']:.2f} s more"
        case "stopped":
            return "stops A (SIGSTOP): a long GC, a page fault, a frozen VM"
        case "continued":
            return "continues A (SIGCONT), which does not know that it slept"
        case "acknowledged":
            before, amount = facts["balance"], facts["amount"]
            return f"writes {before} + {amount} = {before + amount}: committed, acknowledged"
        case "refused":
            return f"is refused: the mark is {facts['mark']}; nothing changed"
        case "released":
            return "releases the lock"
        case "late":
            return f"lets go, and learns that its lease was lost ({facts['reason']})"
    return step.kind


def print_title(console: Console, fenced: bool) -> None:
    from rich.text import Text

    title = "2  The same with a fence" if fenced else "1  A lock alone"
    rest = "claim with the token, then read, then write" if fenced else "as most programs use one"
    console.print()
    console.print(Text.assemble((title, "bold"), (f": {rest}", "dim")))
    console.print(Text(f"{'seconds':>7}  {'process':<7}  what", style="dim underline"))


def print_step(console: Console, step: DemoStep) -> None:
    from rich.text import Text

    style = STYLES[step.process]
    line = Text.assemble(
        (f"{step.at:7.3f}", "dim"),
        "  ",
        (f"{step.process:<7}", style),
        "  ",
        (words(step), KINDS.get(step.kind, "bold red" if step.process == "kernel" else "")),
    )
    console.print(line, soft_wrap=True)


def print_outcome(console: Console, demo_run: DemoRun) -> None:
    from rich.text import Text

    if demo_run.lost:
        text = f"the ledger says {demo_run.balance}, not {demo_run.expected}: an acknowledged update is lost, silently"
        console.print(Text(f"⇒ {text}", style="bold red"), soft_wrap=True)
    else:
        text = f"the ledger says {demo_run.balance}: nothing is lost; the refused one took the lock anew"
        console.print(Text(f"⇒ {text}", style="bold green"), soft_wrap=True)


def print_counts(console: Console, runs: list[DemoRun], seconds: float) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    grid = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    grid.add_column("updates")
    for column in ("acknowledged", "in the ledger", "lost", "refused"):
        grid.add_column(column, justify="right")
    for demo_run in runs:
        bad = "bold red" if demo_run.lost else "bold green"
        counts = (demo_run.acknowledged, demo_run.in_ledger, f"[{bad}]{demo_run.lost}[/]", demo_run.refused)
        grid.add_row("with a fence" if demo_run.fenced else "lock alone", *map(str, counts))
    console.print()
    console.print(grid)
    console.print(
        "No lock can keep a paused holder from waking up late. A fence makes it harmless.\n"
        f"[dim]{seconds:.1f} s, with real processes. All of them kept every rule of locking.[/]"
    )
