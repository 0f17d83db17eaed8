"""Which checks belong to a URL, and one examination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from .. import connect
from ..backends.sqlite.address import path_of
from ..errors import HoldfastError, Misconfigured
from ..settings import without_passwords
from .checks import client
from .experiments import Experiments
from .finding import HealthFinding, Outcome, failed, fine, found, unknown
from .report import Report

NAMESPACE = "holdfast-doctor"
CHECKS_OF = {
    **dict.fromkeys(("redis", "rediss", "unix", "redis+unix", "redis+sentinel", "redis+cluster"), "redis"),
    "redlock": "redlock",
    "sqlite": "sqlite",
    **dict.fromkeys(("etcd", "etcds"), "etcd"),
    **dict.fromkeys(("zookeeper", "zookeepers"), "zookeeper"),
    **dict.fromkeys(("postgresql", "postgres", "postgresql+session", "postgres+session"), "postgresql"),
    **dict.fromkeys(("mysql", "mariadb", "mysql+session", "mariadb+session"), "mysql"),
}
"""The module of an engine's checks, by the scheme of its URL."""


def examine(
    url: str,
    *,
    request_timeout: float = 5.0,
    experiments: bool = False,
    say: Callable[[str], None] = print,
) -> Report:
    """Look at the engine of a URL and at this process.

    `say` is told what is being done. `Misconfigured` for a URL that no engine takes; whatever else goes wrong is a
    finding.
    """
    shown = without_passwords(url)
    say("looking at this process")
    findings = list(client.examination(url).findings())
    if url.startswith("sqlite://") and not path_of(url).exists():
        findings.append(found("engine.reachable", fine("the file is not there yet; the first lock makes it")))
        return Report(shown, (*findings, *_settings(url, request_timeout, say)))
    say("connecting")
    try:
        with connect(url, namespace=NAMESPACE, request_timeout=request_timeout) as locks:
            locks.survey("doctor", exact=True)
            findings.append(found("engine.reachable", fine("it answers")))
            findings += _settings(url, request_timeout, say)
            if not experiments:
                return Report(shown, tuple(findings))
            experiment = Experiments(say)
            findings += experiment.run(locks, url)
            return Report(shown, tuple(findings), tuple(experiment.measurements), tuple(experiment.proposals()))
    except HoldfastError as error:
        return Report(shown, (*findings, *_without_locks(url, request_timeout, say, error)))


def _without_locks(
    url: str, request_timeout: float, say: Callable[[str], None], error: HoldfastError
) -> Iterator[HealthFinding]:
    """Nothing can be locked. What can be seen of the settings may be the cause; what cannot is no news."""
    try:
        seen = [finding for finding in _settings(url, request_timeout, say) if finding.outcome is not Outcome.UNKNOWN]
    except HoldfastError:
        seen = []
    if isinstance(error, Misconfigured) and not seen:
        raise error  # the URL, most likely: nothing was looked at
    yield found("engine.reachable", failed(str(error)) if seen else unknown(str(error)))
    yield from seen


def _settings(url: str, request_timeout: float, say: Callable[[str], None]) -> Iterator[HealthFinding]:
    module = CHECKS_OF.get(url.partition("://")[0])
    if module is None:
        return
    say("reading the engine's settings")
    checks = import_module(f".checks.{module}", __package__)
    with checks.examinations(url, request_timeout) as examinations:
        for examination in examinations:
            yield from examination.findings()
