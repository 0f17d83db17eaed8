"""One process that tells actors and handles their messages, and strikes itself: it stops or dies at the worst moments.

It writes which messages were told to its own file. The effect of a message is its id in the actor's state, with the
token of the worker that has put it there.
"""

from __future__ import annotations

from ... import Actor, Coordinator
from ...errors import BackendUnavailable
from .planted import remove_fence_of_actors
from .worker import WorkerContext, worker_context

KEYS_COUNT = 6
NAME = "lists"


def put_effect(actor: Actor, message: str) -> None:
    """The effect of a message on the state."""
    actor.state = [*(actor.state or []), [message, actor.lease.token]]


class ActorProcess:
    """Tells and handles."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._told = 0

    def work(self, locks: Coordinator) -> None:
        context, ttl = self._context, self._context.config.ttl
        lists = locks.actors(NAME, self._handle, ttl=ttl, tries=1000, backoff=0.01, concurrency=3)
        with lists:
            while not context.ending.is_set():
                key = f"k{context.chance.randrange(KEYS_COUNT)}"
                self._told += 1
                message_id = f"{context.name}-{self._told:06}"
                try:
                    lists.tell(key, message_id, message_id=message_id, timeout=ttl)
                    context.tell("told", key, message_id)
                except (TimeoutError, BackendUnavailable) as error:
                    context.tell("failed", key, type(error).__name__)
                context.ending.wait(context.chance.random() * 0.02)

    def _handle(self, actor: Actor, message: str) -> None:
        self._context.strike("begun")
        put_effect(actor, message)
        self._context.strike("handled")
        self._context.tell("completed", actor.key, message)


def main() -> None:
    """As it was told by its first argument."""
    context = worker_context()
    if not context.config.fenced:
        remove_fence_of_actors()
    context.run(ActorProcess(context).work)


if __name__ == "__main__":
    main()
