"""Once: the work of a key is done once, its result is remembered, and a zombie cannot overwrite it."""

from __future__ import annotations

import asyncio
from typing import Any

from ...errors import (
    AttemptFailed,
    AttemptInDoubt,
    AttemptInProgress,
    FenceRejected,
    Misconfigured,
    PayloadMismatch,
)
from ...recipes.once_record import Completed
from ..context import Context
from ..promise import promise


@promise(needs={"records"})
async def a_result_is_remembered(context: Context) -> None:
    """For every coordinator; each key by itself."""
    one, other = await context.connect(), await context.connect()
    payments = one.once("payments", keep="1h", takeover="refuse")
    async with payments.attempt("order/7") as attempt:
        assert not attempt.done
        assert attempt.token > 0
        await attempt.complete({"charged": 100})
        assert attempt.result == {"charged": 100}
    again = other.once("payments", keep="1h", takeover="refuse")
    async with again.attempt("order/7") as attempt:
        assert attempt.done
        assert attempt.result == {"charged": 100}
    async with again.attempt("order/8") as attempt:
        assert not attempt.done
        await attempt.complete(None)
    async with other.once("mails", keep="1h", takeover="refuse").attempt("order/7") as attempt:
        assert not attempt.done
        await attempt.complete("sent")


@promise(needs={"records"})
async def the_second_waits_for_the_result(context: Context) -> None:
    """Or is told, if it does not want to wait."""
    one, other = await context.connect(), await context.connect()
    first = one.once("payments", keep="1h", takeover="refuse")
    second = other.once("payments", keep="1h", takeover="refuse")

    async def enter(wait: float | None) -> Any:
        async with second.attempt("order/7", wait=wait) as attempt:
            assert attempt.done
            return attempt.result

    async with first.attempt("order/7") as attempt:
        error = await context.raises(AttemptInProgress, enter(0))
        assert "order/7" in str(error)
        waiting = context.start(enter(None))
        await asyncio.sleep(context.seconds(0.05))
        assert not waiting.done()
        await attempt.complete([1, "two"])
    assert await waiting == [1, "two"]


@promise(needs={"records"})
async def of_many_one_does_the_work(context: Context) -> None:
    """Ten at the same moment: one effect, ten times its result."""
    onces = [(await context.connect()).once("payments", keep="1h", takeover="refuse") for _ in range(2)]
    effects: list[int] = []

    async def work(number: int) -> Any:
        async with onces[number % 2].attempt("order/7") as attempt:
            if not attempt.done:
                effects.append(number)
                await attempt.complete(number)
            return attempt.result

    results = await asyncio.gather(*[context.start(work(number)) for number in range(10)])
    assert len(effects) == 1
    assert set(results) == set(effects)


@promise(needs={"records"})
async def another_payload_is_refused(context: Context) -> None:
    """Nothing is done, whether the first is done or under way; None is a payload like others."""
    locks = await context.connect()
    payments = locks.once("payments", keep="1h", takeover="refuse")

    async def enter(key: str, payload: object, other: object = None) -> None:
        async with payments.attempt(key, fingerprint=payload, wait=0) as attempt:
            if not attempt.done:
                await context.raises(PayloadMismatch, enter(key, other))
                await attempt.complete()

    await enter("order/7", {"amount": 100}, {"amount": 101})
    error = await context.raises(PayloadMismatch, enter("order/7", {"amount": 200}))
    assert "order/7" in str(error)
    await enter("order/7", {"amount": 100})
    await enter("order/8", None, 100)
    await context.raises(PayloadMismatch, enter("order/8", 100))


@promise(needs={"records"})
async def an_error_is_retried_or_remembered(context: Context) -> None:
    """As `on_error` says; a function may decide."""
    locks = await context.connect()

    async def fail(once: Any, error: Exception) -> None:
        async with once.attempt("order/7", wait=0):
            raise error

    retried = locks.once("retried", keep="1h", takeover="refuse")
    await context.raises(ZeroDivisionError, fail(retried, ZeroDivisionError("no")))
    async with retried.attempt("order/7") as attempt:
        assert attempt.number == 2
        await attempt.complete(1)
    remembered = locks.once("remembered", keep="1h", takeover="refuse", on_error="remember")
    await context.raises(ZeroDivisionError, fail(remembered, ZeroDivisionError("no")))
    error = await context.raises(AttemptFailed, fail(remembered, ValueError("not run")))
    assert "ZeroDivisionError: no" in str(error)
    chosen = locks.once("chosen", keep="1h", takeover="refuse", on_error=lambda error: "remember")
    await context.raises(ZeroDivisionError, fail(chosen, ZeroDivisionError("no")))
    await context.raises(AttemptFailed, fail(chosen, ValueError("not run")))


@promise(needs={"records"})
async def a_body_without_a_result_is_an_error(context: Context) -> None:
    """It would be done again without anybody's notice. Who wants that abandons it."""
    locks = await context.connect()
    payments = locks.once("payments", keep="1h", takeover="refuse")

    async def leave() -> None:
        async with payments.attempt("order/7", wait=0):
            pass

    await context.raises(Misconfigured, leave())
    async with payments.attempt("order/7", wait=0) as attempt:
        await attempt.abandon()
    async with payments.attempt("order/7", wait=0) as attempt:
        await attempt.complete()


@promise(needs={"records"}, leaves=True)
async def a_dead_attempt_is_taken_over_as_asked(context: Context) -> None:
    """By nobody, or by the next one, or as a function decides that knows what was reached."""
    dying, living = await context.connect(), await context.connect()
    ttl = context.short
    options: dict[str, Any] = {"keep": "1h", "ttl": ttl}
    once = {name: dying.once(name, takeover="refuse", **options) for name in ("refuse", "rerun", "asked", "settled")}
    for each in once.values():
        attempt = each.attempt("order/7")
        await attempt.__aenter__()
        await attempt.phase("charged", "ref-1")
    await dying.close()

    async def enter(name: str, takeover: Any) -> Any:
        async with living.once(name, takeover=takeover, **options).attempt("order/7") as attempt:
            if not attempt.done:
                assert attempt.number == 2
                assert attempt.phases == {"charged": "ref-1"}
                await attempt.complete(name)
            return attempt.result

    seen = []

    def ask(dead: Any) -> str:
        seen.append(dead)
        return "rerun"

    error = await context.raises(AttemptInDoubt, enter("refuse", "refuse"))
    assert error.token > 0
    assert await enter("rerun", "rerun") == "rerun"
    assert await enter("asked", ask) == "asked"
    assert [(dead.key, dead.state, dead.phases) for dead in seen] == [("order/7", "dead", {"charged": "ref-1"})]
    assert await enter("settled", lambda dead: Completed("known")) == "known"


@promise(needs={"records"}, leaves=True)
async def a_zombie_cannot_overwrite_its_successor(context: Context) -> None:
    """Its `complete` and its phases are refused, and the result of the other one stands."""
    paused, living = await context.connect(), await context.connect()
    zombie = paused.once("payments", keep="1h", takeover="refuse").attempt("order/7")
    await zombie.__aenter__()
    token = zombie.token
    payments = living.once("payments", keep="1h", takeover="refuse")
    assert await payments.forget("order/7", token)  # somebody was sure that it is dead
    async with payments.attempt("order/7") as attempt:
        assert attempt.token > token
        await context.raises(FenceRejected, zombie.phase("charged"))
        await attempt.complete("second")
    await context.raises(FenceRejected, zombie.complete("first"))
    view = await payments.look("order/7")
    assert view is not None
    assert (view.state, view.result) == ("done", b'"second"')


@promise(needs={"records"}, real_time=True)
async def a_long_attempt_is_kept_alive(context: Context) -> None:
    """Longer than its ttl: nobody takes it over while its process lives."""
    locks, other = await context.connect(), await context.connect()
    ttl = context.short
    async with locks.once("payments", keep="1h", takeover="rerun", ttl=ttl).attempt("order/7") as attempt:
        taking = context.start(_result(other.once("payments", keep="1h", takeover="rerun", ttl=ttl)))
        await asyncio.sleep(3 * ttl)
        attempt.check()
        await attempt.complete("mine")
    assert await taking == "mine"


async def _result(once: Any) -> Any:
    async with once.attempt("order/7") as attempt:
        if not attempt.done:
            await attempt.complete("taken over")
        return attempt.result


@promise(needs={"records"})
async def what_is_remembered_can_be_looked_at_and_forgotten(context: Context) -> None:
    """In the order of the keys, and by the token if there is doubt."""
    locks = await context.connect()
    payments = locks.once("payments", keep="1h", takeover="refuse")
    last = "\U0010ffff7"  # behind the last character that there is
    for key in ("b", "a", last, "c"):
        async with payments.attempt(key) as attempt:
            await attempt.complete(key)
    assert [(view.key, view.state) for view in await payments.attempts()] == [(key, "done") for key in (*"abc", last)]
    assert [view.key for view in await payments.attempts(after="a", limit=1)] == ["b"]
    view = await payments.look("a")
    assert view is not None
    assert not await payments.forget("a", view.token + 1)
    assert await payments.forget("a", view.token)
    assert not await payments.forget("a")
    assert await payments.look("a") is None
    async with payments.attempt("a") as attempt:
        assert not attempt.done
        assert attempt.token > view.token
        await attempt.complete()


@promise(needs={"records"})
async def a_result_that_cannot_be_kept_is_in_doubt(context: Context) -> None:
    """The work is done, so it is not simply repeated."""
    locks = await context.connect()
    payments = locks.once("payments", keep="1h", takeover="refuse", max_bytes=10)

    async def complete(result: object) -> None:
        async with payments.attempt("order/7", wait=0) as attempt:
            await attempt.complete(result)

    await context.raises(Misconfigured, complete("x" * 20))
    await context.raises(AttemptInDoubt, complete("x"))


@promise(needs={"records"})
async def decorated_functions_are_done_once(context: Context) -> None:
    """By the key that is made of their arguments."""
    locks = await context.connect()
    once = context.unwrapped(locks.once("payments", keep="1h", takeover="refuse"))
    calls: list[int] = []
    if context.body == "asyncio":

        async def pay(order: int, amount: int) -> Any:
            calls.append(order)
            return {"paid": amount}

        paid: Any = once(key=_order, fingerprint=_amount)(pay)
        results = [await paid(7, 100), await paid(7, 100), await paid(8, 50)]
    else:

        def pay_blocking(order: int, amount: int) -> Any:
            calls.append(order)
            return {"paid": amount}

        paid = once(key=_order, fingerprint=_amount)(pay_blocking)
        results = [await asyncio.to_thread(paid, *given) for given in ((7, 100), (7, 100), (8, 50))]
    assert results == [{"paid": 100}, {"paid": 100}, {"paid": 50}]
    assert calls == [7, 8]


def _order(order: int, amount: int) -> str:
    return f"order/{order}"


def _amount(order: int, amount: int) -> int:
    return amount
