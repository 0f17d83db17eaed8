"""What happens between clients and nodes: through our proxy, or by iptables in a network namespace."""

from __future__ import annotations

from ..arena.place import why_not as no_namespace
from ..engines import Engine
from ..proxy import Network
from .model import Kind, Stage


def _some(stage: Stage) -> tuple[Network, str]:
    """All links of one client, all to one node, or a single one."""
    assert stage.engine is not None
    network = stage.engine.network
    assert network is not None
    client, _, node = stage.chance.choice([n for n in network.names() if not n.startswith("replica")]).partition(">")
    return network, stage.chance.choice([f"{client}>*", f"*>{node}", f"{client}>{node}"])


def partition(stage: Stage) -> None:
    network, links = _some(stage)
    with stage.during("partition", f"proxy:{links}"):
        network.hold(links)
        try:
            stage.last(0.5 * stage.ttl, 5 * stage.ttl)
        finally:
            network.heal(links)


def delay(stage: Stage) -> None:
    network, links = _some(stage)
    with stage.during("delay", f"proxy:{links}"):
        network.delay(links, stage.chance.uniform(0.01, 0.4) * stage.ttl)
        try:
            stage.last(1 * stage.ttl, 5 * stage.ttl)
        finally:
            network.heal(links)


def lost_replies(stage: Stage) -> None:
    network, links = _some(stage)
    with stage.during("lost-replies", f"proxy:{links}"):
        if stage.chance.random() < 0.5:
            network.mute(links)
        else:
            network.lose(links, stage.chance.randint(1, 5))
        try:
            stage.last(0.2 * stage.ttl, 3 * stage.ttl)
        finally:
            network.heal(links)


def reset(stage: Stage) -> None:
    network, links = _some(stage)
    with stage.during("reset", f"proxy:{links}"):
        for _ in range(stage.chance.randint(1, 5)):
            network.reset(links)
            stage.ending.wait(stage.chance.uniform(0, 0.1))


def silent(stage: Stage) -> None:
    """What a host does whose server hangs: connections are gone, new ones are accepted and never answered."""
    network, links = _some(stage)
    with stage.during("silent", f"proxy:{links}"):
        network.hold(links)
        network.reset(links)
        try:
            stage.last(1 * stage.ttl, 5 * stage.ttl)
        finally:
            network.heal(links)


def netns(stage: Stage) -> None:
    engine = stage.engine
    assert engine is not None
    node = stage.chance.choice(engine.nodes)
    with stage.during("netns", f"node:{node.name}"):
        ports = (node.port, *node.more_ports) if stage.chance.random() < 0.5 else (node.port,)
        for port in ports:
            engine.place.drop(port, True)
        try:
            stage.last(0.5 * stage.ttl, 5 * stage.ttl)
        finally:
            for port in ports:
                engine.place.drop(port, False)


def _no_namespace(engine: Engine) -> str:
    return no_namespace() or ("" if engine.place.before else "this engine was not started in a namespace")


KINDS = (
    Kind(
        "partition", "nothing passes between some clients and some servers; then everything, late", "engine", partition
    ),
    Kind("delay", "every message takes long", "engine", delay),
    Kind("lost-replies", "requests arrive, replies do not", "engine", lost_replies),
    Kind("reset", "connections end by RST", "engine", reset),
    Kind("silent", "connections end by RST; new ones are accepted and never answered", "engine", silent),
    Kind("netns", "iptables drops the packets of a server, in a network namespace", "engine", netns, _no_namespace),
)
