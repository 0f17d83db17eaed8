"""Faults between clients and nodes: in our proxy, or by iptables in a network namespace."""

from __future__ import annotations

from ..engines import TorturedEngine
from ..proxy import ProxyNetwork
from ..sandbox.location import why_not as no_namespace
from .model import FaultContext, FaultKind


def _some(context: FaultContext) -> tuple[ProxyNetwork, str]:
    """All links of one client, all to one node, or a single one."""
    assert context.engine is not None
    network = context.engine.network
    assert network is not None
    client, _, node = context.chance.choice([n for n in network.names() if not n.startswith("replica")]).partition(">")
    return network, context.chance.choice([f"{client}>*", f"*>{node}", f"{client}>{node}"])


def partition(context: FaultContext) -> None:
    network, links = _some(context)
    with context.during("partition", f"proxy:{links}"):
        network.hold(links)
        try:
            context.last(0.5 * context.ttl, 5 * context.ttl)
        finally:
            network.heal(links)


def delay(context: FaultContext) -> None:
    network, links = _some(context)
    with context.during("delay", f"proxy:{links}"):
        network.delay(links, context.chance.uniform(0.01, 0.4) * context.ttl)
        try:
            context.last(1 * context.ttl, 5 * context.ttl)
        finally:
            network.heal(links)


def lost_replies(context: FaultContext) -> None:
    network, links = _some(context)
    with context.during("lost-replies", f"proxy:{links}"):
        if context.chance.random() < 0.5:
            network.mute(links)
        else:
            network.lose(links, context.chance.randint(1, 5))
        try:
            context.last(0.2 * context.ttl, 3 * context.ttl)
        finally:
            network.heal(links)


def reset(context: FaultContext) -> None:
    network, links = _some(context)
    with context.during("reset", f"proxy:{links}"):
        for _ in range(context.chance.randint(1, 5)):
            network.reset(links)
            context.ending.wait(context.chance.uniform(0, 0.1))


def silent(context: FaultContext) -> None:
    """As a host whose server hangs: connections are reset, new ones are accepted and never answered."""
    network, links = _some(context)
    with context.during("silent", f"proxy:{links}"):
        network.hold(links)
        network.reset(links)
        try:
            context.last(1 * context.ttl, 5 * context.ttl)
        finally:
            network.heal(links)


def netns(context: FaultContext) -> None:
    engine = context.engine
    assert engine is not None
    node = context.chance.choice(engine.nodes)
    with context.during("netns", f"node:{node.name}"):
        ports = (node.port, *node.more_ports) if context.chance.random() < 0.5 else (node.port,)
        for port in ports:
            engine.location.drop(port, True)
        try:
            context.last(0.5 * context.ttl, 5 * context.ttl)
        finally:
            for port in ports:
                engine.location.drop(port, False)


def _no_namespace(engine: TorturedEngine) -> str:
    return no_namespace() or ("" if engine.location.prefix_argv else "this engine was not started in a namespace")


KINDS = (
    FaultKind(
        "partition", "nothing passes between some clients and some servers; then everything, late", "engine", partition
    ),
    FaultKind("delay", "every message takes long", "engine", delay),
    FaultKind("lost-replies", "requests arrive, replies do not", "engine", lost_replies),
    FaultKind("reset", "connections end by RST", "engine", reset),
    FaultKind("silent", "connections end by RST; new ones are accepted and never answered", "engine", silent),
    FaultKind(
        "netns", "iptables drops the packets of a server, in a network namespace", "engine", netns, _no_namespace
    ),
)
