"""Flows and their ops, for authors of engines (docs/add-an-engine.md): the rules are in `holdfast._core.flow`.

A flow is a generator that yields ops and returns a result. It is run by threads, by asyncio and by the simulator, so it
never touches time, chance or a socket itself. An op answers with a result or raises; a flow that is cancelled sees the
cancellation at its op.

    requests      Call, Wait                        of a backend, to the client of its engine
    connections   Open, Send, Receive, Exchange     of a client; each with a deadline on the clock of `NOW`
                  StartTls                          for a connection that begins in the clear
    waiting       Sleep, WaitEvent, WaitAny, NEW_EVENT
                  WaitDial                          for a connection that another flow makes or uses
    the world     NOW, RANDOM
    other flows   Shield, Spawn; `yield from` for one that is part of this one
                  Tell                              for those whose requests this one carries out
"""

from __future__ import annotations

from ._core.flow import (
    NEW_EVENT,
    NOW,
    RANDOM,
    Call,
    Connection,
    Endpoint,
    Exchange,
    File,
    Flow,
    Op,
    Open,
    Receive,
    RequestFlow,
    Send,
    Shield,
    Sleep,
    Spawn,
    StartTls,
    Tell,
    Wait,
    WaitAny,
    WaitDial,
    WaitEvent,
    WakeEvent,
)

__all__ = [
    "NEW_EVENT",
    "NOW",
    "RANDOM",
    "Call",
    "Connection",
    "Endpoint",
    "Exchange",
    "File",
    "Flow",
    "Op",
    "Open",
    "Receive",
    "RequestFlow",
    "Send",
    "Shield",
    "Sleep",
    "Spawn",
    "StartTls",
    "Tell",
    "Wait",
    "WaitAny",
    "WaitDial",
    "WaitEvent",
    "WakeEvent",
]
