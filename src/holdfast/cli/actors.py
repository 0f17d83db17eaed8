"""`holdfast actors ls|retry|drop`: actors, their inboxes, and the messages that could not be handled."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from ..recipes.actor_record import ActorView, DeadLetter
from ..settings import without_passwords
from . import exit_codes
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import engine_options, json_option, print_json
from .tables import show

COLUMNS = ("key", "inbox", "tries", "dead letters", "token", "error")
LETTER_COLUMNS = ("key", "id", "tries", "message", "error")
MAX_LETTERS_COUNT = 1000
"""How many dead letters are counted."""
MAX_TEXT_COUNT = 60
"""How much of a message is shown in a table."""


@click.group()
def actors() -> None:
    """Look after actors (locks.actors): who has messages, and what could not be handled.

    A message whose handling has failed too often is a dead letter: it is out of the way until it is told again (retry)
    or removed (drop).
    """


@actors.command()
@click.argument("name")
@click.option("--after", default="", metavar="KEY", help="Begin behind this key.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="How many to list.")
@click.option("--dead", is_flag=True, help="List the dead letters instead, with their errors.")
@engine_options
@json_option
def ls(name: str, after: str, limit: int, dead: bool, url: str | None, namespace: str, as_json: bool) -> None:
    """List the actors NAME, in the order of their keys: messages that wait, tries of the first one, dead letters.

    \b
    Examples:
      holdfast actors ls accounts
      holdfast actors ls accounts --dead
      holdfast actors ls accounts --json | jq '.[] | select(.inbox > 0)'
    """
    if dead and after:
        raise click.UsageError("--after goes with the list of actors, not with --dead")
    most = limit if dead else MAX_LETTERS_COUNT
    found: list[ActorView] = []
    letters: list[DeadLetter] = []
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            system = locks.actors(name)
            letters = system.dead_letters(limit=most)
            found = [] if dead else system.views(after, limit)
    counts = {view.key: sum(letter.key == view.key for letter in letters) for view in found}
    if as_json:
        views = [asdict(view) | {"dead_letters": counts[view.key]} for view in found]
        print_json([asdict(letter) for letter in letters] if dead else views)
    elif dead and letters:
        show(LETTER_COLUMNS, [_letter_row(letter) for letter in letters], f"dead letters of {name}", {"tries"})
        if len(letters) == limit:
            click.echo(
                "there may be more: a larger --limit shows up to 1000, and the rest once some of these are gone",
                err=True,
            )
    elif found:
        rows = [_row(view, counts[view.key]) for view in found]
        show(COLUMNS, rows, f"actors {name}", {"inbox", "tries", "dead letters", "token"})
        if len(found) == limit:
            click.echo(f"there may be more: --after {found[-1].key!r}", err=True)
        if len(letters) == most:
            click.echo(f"there are {most} dead letters or more: the counts may be too low", err=True)
    else:
        what = "dead letter of" if dead else "actor"
        click.echo(f"there is no {what} {name!r} at {without_passwords(chosen_url(url))}", err=True)


@actors.command()
@click.argument("name")
@click.argument("key")
@click.argument("message_id", metavar="ID")
@engine_options
@json_option
def retry(name: str, key: str, message_id: str, url: str | None, namespace: str, as_json: bool) -> int:
    """Tell a dead letter again, at the end of the inbox of KEY. Exit code 1 if there is none."""
    found = False
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            found = locks.actors(name).retry(key, message_id)
    return _say(name, key, message_id, found, as_json, "retried")


@actors.command()
@click.argument("name")
@click.argument("key")
@click.argument("message_id", metavar="ID")
@engine_options
@json_option
def drop(name: str, key: str, message_id: str, url: str | None, namespace: str, as_json: bool) -> int:
    """Remove a dead letter of KEY for good. Nothing is asked. Exit code 1 if there is none."""
    found = False
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            found = locks.actors(name).drop(key, message_id)
    return _say(name, key, message_id, found, as_json, "dropped")


def _say(name: str, key: str, message_id: str, found: bool, as_json: bool, done: str) -> int:
    if as_json:
        print_json({"name": name, "key": key, "id": message_id, done: found})
    elif found:
        click.echo(f"{done} {message_id!r} of {key!r} ({name!r})")
    else:
        click.echo(f"there is no dead letter {message_id!r} of {key!r} ({name!r})", err=True)
    return exit_codes.OK if found else exit_codes.FAILED


def _row(view: ActorView, dead: int) -> tuple[str, ...]:
    return view.key, str(view.inbox), str(view.tries), str(dead), str(view.token), view.error


def _letter_row(letter: DeadLetter) -> tuple[str, ...]:
    text = json.dumps(letter.message, ensure_ascii=False)
    shown = text if len(text) <= MAX_TEXT_COUNT else text[: MAX_TEXT_COUNT - 1] + "…"
    return letter.key, letter.id, str(letter.tries), shown, letter.error
