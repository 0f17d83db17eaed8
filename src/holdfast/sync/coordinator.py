# Generated from src/holdfast/aio/coordinator.py by `make generate`: change that file, not this one.
"""The coordinator of threads: one connection to an engine, one keeper, and the recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from .._core.pickling import unpicklable
from ..errors import Misconfigured
from ..model import LockSpec, LockView, Promises, Sequencer, check_name, check_prefix, check_token
from ..observe.refusals import refusals
from ..ports import Evicts, Surveys
from ..recipes import specs
from ..recipes.actor_options import plan_actors
from ..recipes.election import candidacy
from ..recipes.limiter import Rate
from ..recipes.multi import canonical
from ..recipes.names import with_fields
from ..recipes.once_options import OnError, Takeover, plan_once
from ..recipes.once_record import MAX_RESULT_BYTES, ResultCodec
from ..recipes.options import Options, shows_options
from ..recipes.partition_spec import check_partition
from ..registry import notice_fork
from .activation import Handler
from .actor_system import ActorSystem
from .actors import reenter
from .base_coordinator import BaseCoordinator
from .election import Election
from .lease import Lease
from .limiter import Limiter
from .lock import Lock
from .multi import LockAll
from .once import Once
from .partitions import Partitions
from .recovery import Recover
from .rwlock import RWLock
from .shard_hooks import OnRevoking, OnShard

if TYPE_CHECKING:
    from ..observe.stats import LockStats

OnLost = Callable[[Lease], object]


class Coordinator(BaseCoordinator):
    """Where locks come from. Made by `holdfast.connect`; safe to share between threads."""

    __reduce__ = unpicklable("connect() there, with the same URL")

    # Recipes

    @shows_options
    def lock(
        self, name: str, *, on_lost: OnLost | None = None, recover: Recover | None = None, **options: Unpack[Options]
    ) -> Lock:
        """A mutex: one holder at a time.

        `lock("orders/{id}", id=7)` locks `orders/7`, and counts it under the family `orders/{id}`, as the name
        `holdfast.Name("orders/{id}", id=7)` does for every recipe, and for type checkers.

        `recover(lease, predecessor)` is called before the body if the last holder did not end cleanly; until it has
        succeeded once, the name is unrecovered. See docs/recovery.md.
        """
        if recover is None:
            return Lock(self, self._specs.get(name, options), on_lost)
        return Lock(self, self._robust(name, options), on_lost, recover=recover)

    @shows_options
    def reentrant(
        self, name: str, *, on_lost: OnLost | None = None, recover: Recover | None = None, **options: Unpack[Options]
    ) -> Lock:
        """A mutex that the same thread may take again while it holds it; `recover` is as in `lock`."""
        if recover is None:
            return Lock(self, self._specs.get(name, options), on_lost, reenter)
        return Lock(self, self._robust(name, options), on_lost, reenter, recover)

    @shows_options
    def rwlock(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> RWLock:
        """A read-write lock: many readers or one writer, in the order of arrival, so neither starves."""
        self._need("shared", name)
        return RWLock(self, name, on_lost, options)

    @shows_options
    def semaphore(
        self,
        name: str,
        *,
        permits: int,
        weight: int = 1,
        on_lost: OnLost | None = None,
        **options: Unpack[Options],
    ) -> Lock:
        """`weight` (one) of `permits`."""
        self._need("counting", name)
        return Lock(self, self._specs.get(name, options, specs.permit, permits, weight), on_lost)

    @shows_options
    def lock_all(self, names: Iterable[str], *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> LockAll:
        """Several mutexes at once, all or none, without deadlock."""
        return LockAll(self, [self._specs.get(name, options) for name in canonical(names)], on_lost)

    @shows_options
    def election(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Election:
        """One leader at a time, who has stopped before the next one starts."""
        name, options = with_fields(name, options)
        return Election(self, candidacy(name, self._defaults | options), on_lost)

    def limiter(self, name: str, rate: str, *, burst: int | None = None) -> Limiter:
        """So many per period ("5/s", "100/min"), evenly spaced unless a `burst` says how many may pass at once."""
        return Limiter(self, self._rates.get(Rate.parse(name, rate, burst)))

    def once(
        self,
        name: str,
        *,
        keep: float | str,
        takeover: Takeover,
        ttl: float | None = None,
        on_error: OnError = "retry",
        wait: float | None = None,
        codec: ResultCodec | None = None,
        max_bytes: int = MAX_RESULT_BYTES,
    ) -> Once:
        """Run the work of a key once, and remember its result for `keep` ("24h", or seconds).

        `takeover` says what happens after a crash, when nobody knows how far the work came: "rerun", "refuse" (a person
        decides), or a function that is called with what is known of the dead attempt. `on_error`: after an exception in
        the body another attempt may begin ("retry"), or the failure is remembered ("remember").
        """
        self._need("records", name)
        given = self._defaults["ttl"] if ttl is None else ttl
        return Once(
            self,
            plan_once(
                name, keep=keep, takeover=takeover, ttl=given, on_error=on_error, wait=wait, codec=codec,
                max_bytes=max_bytes,
            ),
        )  # fmt: skip

    def partitions(
        self,
        name: str,
        *,
        shards: int,
        weight: int = 1,
        ttl: float | None = None,
        drain: float | None = None,
        moves: str | None = None,
        on_assigned: OnShard | None = None,
        on_revoking: OnRevoking | None = None,
        on_lost: OnShard | None = None,
    ) -> Partitions:
        """Shards, each owned by one member at a time, spread evenly over those that run.

        `weight`: a member's share, relative to the others'. `drain`: how long `on_revoking(shard, deadline)` may take
        (a ttl, unless it is named); the deadline is of `time.monotonic()`. `moves`: how fast this member gives up
        shards to others that have joined, as in "10/s"; as fast as it can, unless it is named.
        """
        spec = check_partition(
            self._core.backend, name, shards, weight, self._defaults["ttl"] if ttl is None else ttl, drain, moves
        )
        return Partitions(self, spec, on_assigned, on_revoking, on_lost)

    def actors(
        self,
        name: str,
        handler: Handler | None = None,
        *,
        ttl: float | None = None,
        concurrency: int = 10,
        capacity: int = 100,
        tries: int = 5,
        backoff: float = 0.1,
    ) -> ActorSystem:
        """Actors by key: `handler(actor, message)` is called for one message at a time per key, in all processes.

        Entered by `with`, it handles messages, of `concurrency` actors at once; without a handler it can tell and
        ask. An inbox holds `capacity` messages. A message whose handling has failed `tries` times, with pauses from
        `backoff` seconds on, becomes a dead letter. `ttl`: after how long a worker that has died is succeeded.
        """
        self._need("records", name)
        given = self._defaults["ttl"] if ttl is None else ttl
        plan = plan_actors(name, ttl=given, concurrency=concurrency, capacity=capacity, tries=tries, backoff=backoff)
        return ActorSystem(self, plan, handler)

    # Looking after them

    @property
    def promises(self) -> Promises:
        """What this engine can keep."""
        return self._engine.backend.promises

    @property
    def url(self) -> str:
        """The engine's address, as it may be shown: without passwords."""
        return self._engine.url

    def survey(self, prefix: str = "", *, exact: bool = False) -> list[LockView]:
        """Every name that begins with `prefix` and has a live claim: who holds it, who waits.

        `exact`: the name that is the prefix, and no other. That is one read, however many names there are.
        """
        backend = self._engine.backend
        if not isinstance(backend, Surveys):
            raise Misconfigured(f"{backend.scheme} cannot be surveyed")
        looked = backend.survey(check_name(prefix) if exact else check_prefix(prefix), exact)
        views = self._run(self._core.timed("survey", looked))
        return [view for view in views if view.name == prefix] if exact else views

    def evict(self, name: str, token: int) -> bool:
        """End the hold with this token, by hand. Its holder learns of it at its next renewal."""
        check_token(token, check_name(name))
        backend = self._engine.backend
        if not isinstance(backend, Evicts):
            raise Misconfigured(
                f"{backend.scheme} cannot evict a holder of {name!r}: its locks live with their session"
            )
        return self._run(self._core.timed("evict", backend.evict(name, token)))

    def ask(self, name: str, token: int | None = None) -> int:
        """Ask the holders of a name (or the one with this token) to give way. Answers how many were asked.

        Each learns of it with its next renewal at the latest (`lease.asked`), and does as it sees fit.
        """
        return self._run(self._core.timed("ask", self._core.ask(name, token)))

    def check(self, sequencer: Sequencer | str) -> bool:
        """Whether the grant of a sequencer is held at this moment."""
        return self._run(self._core.timed("check", self._core.check(Sequencer.parse(sequencer))))

    def stats(self) -> LockStats:
        """What this coordinator has counted since it was connected, by family of names, with the five verdicts.

        The engine is not asked. See docs/metrics.md.
        """
        notice_fork()
        return self._core.stats(refusals())

    # Life

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Coordinator {self.url}>"

    def _robust(self, name: str, options: Options) -> LockSpec:
        self._need("predecessor", name)
        return self._specs.get(name, options, specs.robust)

    def _need(self, promise: str, name: str) -> None:
        self.promises.demand({promise}, f"{self._engine.backend.scheme} ({name!r})")
