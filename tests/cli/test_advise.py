"""`holdfast advise`: every path ends in a leaf, bad answers are refused, figures decide; for people and programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.advise.advice import advise
from holdfast.cli.advise.engine_report import PAIR_COUNT, EngineReport
from holdfast.cli.advise.page import page
from holdfast.cli.advise.settings import settings_of
from holdfast.cli.advise.text import advice_lines
from holdfast.cli.advise.tree import DecisionTree, parse, the_tree
from holdfast.cli.advise.walk import BadAnswer, Given, Walk, check, walk
from holdfast.errors import Misconfigured
from holdfast.model import MAX_DURATION_S, LockSpec, Promises
from tests.cli.harness import HOLDFAST, LONG, Cli, Done
from tests.cli.screen import CTRL_C, Screen
from tests.cli.tree_check import complaints

ROOT = Path(__file__).parents[2]
TREE = the_tree()
FILE: dict[str, Given] = {
    "need": "section",
    "threads": "no",
    "harm": "damage",
    "resource": "file",
    "machines": "one",
    "p99": 0.4,
}
UPDATE: dict[str, Given] = {"need": "value", "change": "compute", "store": "sql", "resource": "sql"}
UPDATE |= {"transaction": "no", "machines": "one", "p99": "unknown"}


def paths(tree: DecisionTree, given: dict[str, Given] | None = None) -> Iterator[tuple[dict[str, Given], Walk]]:
    """Every way through the tree, the questions about settings included."""
    given = given or {}
    walked = walk(tree, given)
    if (question := walked.question) is None:
        yield given, walked
        return
    values: list[Given] = [answer.value for answer in question.answers]
    if question.kind == "seconds":
        values += ["unknown", 0.4, "90s"]
    assert values, f"{question.name} cannot be answered after {given}"
    for value in values:
        yield from paths(tree, {**given, question.name: value})


def ask(cli: Cli, answers: object, *options: str, text: str | None = None) -> Done:
    done = subprocess.run(
        [HOLDFAST, "advise", "--answers", "-", *options],
        input=json.dumps(answers) if text is None else text,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def type_in(cli: Cli, lines: bytes, *options: str) -> Done:
    done = subprocess.run(
        [HOLDFAST, "advise", *options], input=lines, env=cli.environment, capture_output=True, timeout=LONG, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


# The tree


def test_every_path_ends_in_a_leaf_and_every_leaf_is_reached() -> None:
    found = list(paths(TREE))
    assert {walked.leaf.name for _, walked in found if walked.leaf} == set(TREE.leaves)
    for given, walked in found:
        assert len(given) <= 12
        advice = advise(TREE, walked, None)
        assert "$" not in advice.code.removeprefix("$ holdfast")
        assert "\n".join(advice_lines(TREE, advice))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('next = "effect"', 'next = "nowhere"', "leads to 'nowhere'"),
        ('next = "rwlock"', 'next = "lock-all"', "nothing leads to 'rwlock'"),
        ('asks = ["machines", "engine"]', 'asks = ["machines", "motor"]', "asks 'motor'"),
        ('next = "election"', 'next = "need"', "nothing leads to 'election'"),
        ('next = "limiter"', 'next = "need"', "leads back to 'need'"),
        ("$timeout)", "$patience)", "fills in '$patience'"),
        ('needs = ["records"]', 'needs = ["recordings"]', "'recordings', which is no promise"),
        ('when = { machines = "many" }', 'when = { machines = "lots" }', "'lots'"),
        ('value = "etcd"\ntext = "etcd"', 'value = "etc"\ntext = "etcd"', "'etc' is no engine"),
    ],
)
def test_a_broken_tree_is_found(old: str, new: str, complaint: str) -> None:
    text = (ROOT / "src/holdfast/cli/advise/tree.toml").read_text()
    assert old in text
    assert any(complaint in found for found in complaints(parse(text.replace(old, new))))


def test_this_tree_is_whole() -> None:
    assert list(complaints(TREE)) == []


def test_every_leaf_has_all_that_a_leaf_has() -> None:
    for leaf in TREE.leaves.values():
        assert all((leaf.title, leaf.use, leaf.why, leaf.not_protected, leaf.code)), leaf.name
    for question in TREE.questions.values():
        assert question.text.endswith("?")
        assert question.why


def test_the_page_is_what_the_data_says() -> None:
    assert (ROOT / "docs/advise.md").read_text() == page(TREE), "run: holdfast advise --markdown > docs/advise.md"


def test_the_drawing_has_every_question_and_every_leaf() -> None:
    drawing = page(TREE).partition("```mermaid\n")[2].partition("```")[0]
    settings = {name for leaf in TREE.leaves.values() for name in leaf.asks}
    for name in (TREE.questions.keys() - settings) | TREE.leaves.keys():
        assert f"    {name.replace('-', '_')}_" in drawing


# Answers


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"need": "lock"}, "once, value"),
        ({"need": 3}, "once, value"),
        ({"need": True}, "once, value"),
        ({"need": None}, "once, value"),
        ({"need": ["once"]}, "once, value"),
        ({"wish": "once"}, "need"),
        ({"p99": -1}, "a duration above 0"),
        ({"p99": "soon"}, "a duration above 0"),
        ({"p99": "nan"}, "a duration above 0"),
        ({"p99": "inf"}, "a duration above 0"),
        ({"p99": 1e300}, "a duration above 0"),
        ({"conflicts": 101}, "seldom, often"),
        ({"conflicts": "many"}, "seldom, often"),
        ({"conflicts": 1}, "'1%' or '100%'"),
        ({"updates": -1}, "few, many, or a number of updates"),
        ({"updates": "inf"}, "few, many, or a number of updates"),
    ],
)
def test_a_bad_answer_is_refused_with_what_is_allowed(given: dict[str, Given], allowed: str) -> None:
    with pytest.raises(BadAnswer) as refused:
        check(TREE, given)
    assert allowed in str(refused.value)
    assert isinstance(refused.value, Misconfigured)


def test_an_engine_that_cannot_do_it_is_not_among_the_answers() -> None:
    given: dict[str, Given] = {"need": "limit", "limit": "together", "machines": "many"}
    question = walk(TREE, given).question
    assert question is not None
    assert "redis" in [answer.value for answer in question.answers]
    with pytest.raises(BadAnswer, match="allowed: ") as refused:
        walk(TREE, {**given, "engine": "redlock"})
    assert "redlock" not in str(refused.value).partition("allowed: ")[2]


@pytest.mark.parametrize(
    ("conflicts", "percent"), [(29, 29), ("29%", 29), (0.29, 29), ("0.5%", 0.5), (0, 0), (100, 100)]
)
def test_a_conflict_rate_is_taken_as_cas_reports_it_or_in_percent(conflicts: Given, percent: float) -> None:
    walked = walk(TREE, {**UPDATE, "conflicts": conflicts})
    assert walked.number("conflicts") == pytest.approx(percent)


@pytest.mark.parametrize(
    ("conflicts", "leaf"), [(29, "fence-sql"), (20, "fence-sql"), (19.9, "cas-sql"), (0, "cas-sql")]
)
def test_the_conflict_rate_decides(conflicts: float, leaf: str) -> None:
    walked = walk(TREE, {**UPDATE, "conflicts": conflicts})
    assert walked.leaf is not None
    assert walked.leaf.name == leaf
    (remark,) = advise(TREE, walked, None).remarks
    verdict = "take a lock" if leaf == "fence-sql" else "a retry is cheaper"
    assert remark.startswith(f"{conflicts:.3g} % of the updates conflict: {verdict}")


@pytest.mark.parametrize(
    ("updates", "pair_s", "leaf", "remark"),
    [
        (40, None, "cas-sql", "18.1 % of the updates conflict: a retry is cheaper than a lock."),
        ("40/s", 0.001, "cas-sql", "3.92 % of the updates conflict: a retry is cheaper than a lock."),
        (40, 0.02, "fence-sql", "55.1 % of the updates conflict: take a lock."),
        (0, 1.0, "cas-sql", "0 % of the updates conflict: a retry is cheaper than a lock."),
        ("few", None, "cas-sql", ""),
        ("many", None, "fence-sql", ""),
    ],
)
def test_who_does_not_know_the_rate_has_it_computed(
    updates: Given, pair_s: float | None, leaf: str, remark: str
) -> None:
    walked = walk(TREE, {**UPDATE, "conflicts": "unknown", "updates": updates}, pair_s)
    report = None if pair_s is None else EngineReport("some://engine", Promises(frozenset({"fencing"})), 9, pair_s, 1)
    assert walked.leaf is not None
    assert walked.leaf.name == leaf
    assert "".join(advise(TREE, walked, report).remarks[1:]) == remark


@pytest.mark.parametrize(
    ("p99", "seconds"), [("400ms", 0.4), ("0.4", 0.4), (0.4, 0.4), ("90s", 90), ("90 s", 90), ("5m", 300), ("2h", 7200)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(p99: Given, seconds: float) -> None:
    assert walk(TREE, {**FILE, "p99": p99}).number("p99") == pytest.approx(seconds)


# Settings


@pytest.mark.parametrize("p99", [0.1, 0.123, 0.4, 1, 1.7, 2.1, 3, 7, 9.99, 30, 47, 60])
def test_the_ttl_is_5_to_10_times_the_p99(p99: float) -> None:
    ttl, *_ = settings_of(TREE.leaves["fence-sql"], p99)
    assert ttl.name == "ttl"
    assert 5 * p99 <= float(ttl.value) <= 10 * p99 * 1.000001


def test_the_ttl_has_bounds() -> None:
    leaf = TREE.leaves["fence-sql"]
    values = {each.name: each.value for each in settings_of(leaf, 0.001)}
    assert values["ttl"] == 1
    values = {each.name: each.value for each in settings_of(leaf, 3600)}
    assert (values["ttl"], values["max_hold"]) == (300, 80_000)
    for p99 in (1e-300, MAX_DURATION_S):
        numbers = {each.name: float(each.value) for each in settings_of(leaf, p99)}
        LockSpec("orders/7", ttl=numbers["ttl"], timeout=numbers["timeout"], max_hold=numbers["max_hold"])
    values = {each.name: each.value for each in settings_of(leaf, None)}
    assert values == {"ttl": 30, "timeout": 60}
    values = {each.name: each.value for each in settings_of(leaf, 0.4, engine_p99=0.55)}
    assert values["ttl"] == 6  # ten times what the engine takes


# What the engine says


def test_what_an_engine_cannot_promise_is_said() -> None:
    walked = walk(TREE, {"need": "limit", "limit": "together", "p99": 1}, 0.001)
    report = EngineReport(
        "some://engine", Promises(frozenset({"fencing"}), {"counting": "it cannot count"}), 9, 0.001, 0.5
    )
    advice = advise(TREE, walked, report)
    assert [(lack.promise, lack.needed, lack.why) for lack in advice.lacks] == [("counting", True, "it cannot count")]
    text = " ".join("\n".join(advice_lines(TREE, advice)).split())
    assert "It cannot do this: it does not promise 'counting': it cannot count. These can: sqlite, postgresql" in text
    assert "p50 1 ms, p99 500 ms" in text


def test_what_makes_it_weaker_is_said_of_an_engine_that_is_only_named() -> None:
    given: dict[str, Given] = {"need": "section", "threads": "no", "harm": "damage", "resource": "none"}
    given |= {"request-key": "no", "machines": "many", "p99": 1}
    for engine, lacks in (("redis", {"linearizable", "durable"}), ("etcd", set())):
        advice = advise(TREE, walk(TREE, {**given, "engine": engine}), None)
        assert {lack.promise for lack in advice.lacks} == lacks
        assert not any(lack.needed for lack in advice.lacks)


def test_a_url_is_asked_and_measured(cli: Cli) -> None:
    with cli.locks.lock("first"):
        pass  # the file is there
    done = ask(cli, {"need": "leader", "p99": 2}, "--json", "--url", cli.url)
    assert done.code == 0, done
    engine = json.loads(done.out)["engine"]
    assert engine["measured"]
    assert "linearizable" in engine["promises"]
    assert 1 <= engine["pairs"] <= PAIR_COUNT
    assert 0 < engine["p50"] <= engine["p99"]
    assert cli.locks.survey("advise/") == []


def test_a_url_that_is_wrong_is_an_error_before_anything_is_asked(cli: Cli) -> None:
    missing = ask(cli, {}, "--url", f"sqlite://{cli.folder}/missing.db")
    assert missing.code == 64
    assert not (cli.folder / "missing.db").exists()
    unreachable = ask(cli, {}, "--url", "redis://127.0.0.1:1")
    assert (unreachable.code, unreachable.err.count("\n")) == (69, 1)


# The command, for programs


def test_json_has_its_fields(cli: Cli) -> None:
    done = ask(cli, FILE, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert list(told) == [
        *("version", "leaf", "title", "use", "why", "not_protected", "remarks", "settings", "language", "code"),
        *("answers", "engine"),
    ]
    assert (told["version"], told["leaf"], told["answers"]) == (1, "fence-file", FILE)
    assert {each["name"]: each["value"] for each in told["settings"]} == {"ttl": 4, "timeout": 8, "max_hold": 8}
    assert set(told["engine"]) == {"url", "measured", "promises", "pairs", "p50", "p99", "lacks"}
    assert told["engine"]["measured"] is False
    assert "ttl=4, timeout=8" in told["code"]


def test_a_leaf_without_an_engine_says_so(cli: Cli) -> None:
    told = json.loads(ask(cli, {"need": "once", "effect": "row"}, "--json").out)
    assert (told["engine"], told["settings"]) == (None, [])


def test_an_option_is_stronger_than_the_file(cli: Cli) -> None:
    told = json.loads(ask(cli, FILE, "--json", "--p99", "2s").out)
    assert told["settings"][0]["value"] == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"need": "lock"}', "'lock' is no answer to 'need'"),
        ('{"need": "once"}', "'effect' is not answered"),
        ("{}", "'need' is not answered"),
        ("[]", "one JSON object"),
        ("nonsense", "no JSON"),
        ("", "no JSON"),
        ('{"need": "once", "need": "value"}', "answered twice"),
        ('{"need": {"a": 1}}', "is no answer to 'need'"),
        ("[" * 100_000, "no JSON"),
        ('{"p99": ' + "9" * 5000 + "}", ""),
        ('{"need": "' + "x" * (1 << 20) + '"}', "longer than"),
        ('{"need": "' + "x" * 100_000 + '"}', "is no answer"),
        ('{"' + "x" * 100_000 + '": 1}', "there is no question"),
    ],
)
def test_bad_answers_end_with_64_and_one_line(cli: Cli, text: str, said: str) -> None:
    done = ask(cli, None, "--json", text=text)
    assert (done.code, done.out, done.err.count("\n")) == (64, "", 1), done
    assert said in done.err
    assert len(done.err) < 1000


def test_a_file_that_is_missing_ends_with_64(cli: Cli) -> None:
    done = cli.run("advise", "--answers", str(cli.folder / "missing.json"))
    assert (done.code, done.err.count("\n")) == (64, 1)


def test_answers_come_from_a_file(cli: Cli) -> None:
    (cli.folder / "answers.json").write_text(json.dumps(FILE))
    done = cli.run("advise", "--answers", str(cli.folder / "answers.json"))
    assert done.code == 0
    assert done.out.startswith("A lock, and a fence beside the file\n")
    assert "\x1b" not in done.out
    for part in ("What it does not protect from", "ttl = 4", "10 times the p99 of 0.4 s", "FencedFile("):
        assert part in done.out


def test_markdown_is_the_page(cli: Cli) -> None:
    assert cli.run("advise", "--markdown").out == page(TREE)


# The command, for people


def test_lines_on_a_pipe_answer(cli: Cli) -> None:
    done = type_in(cli, b"section\n2\n?\nnonsense\nb\nno\ndamage\n\nfile\n1\nsoon\n0.4\n")
    assert done.code == 0, done
    assert done.out.startswith("A lock, and a fence beside the file\n")
    assert TREE.questions["harm"].why[:40] in done.err
    assert "'nonsense' is no answer to 'harm'" in done.err
    assert "'soon' is no answer to 'p99'" in done.err


def test_json_is_alone_on_stdout_when_questions_are_asked(cli: Cli) -> None:
    done = type_in(cli, b"once\nrow\n", "--json")
    assert json.loads(done.out)["leaf"] == "unique-constraint"


def test_what_was_given_is_not_asked(cli: Cli) -> None:
    done = type_in(cli, b"value\ncompute\nsql\nyes\n", "--conflicts", "29")
    assert done.code == 0, done
    assert "29 % of the updates conflict: take a lock." in done.out
    assert done.out.startswith(TREE.leaves["row-lock"].title)


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        (b"", 64, "the input ended before 'need' was answered"),
        (b"once\n", 64, "the input ended before 'effect' was answered"),
        (b"q\n", 1, "no advice"),
        (b"\xff\xfe\nq\n", 1, "is no answer"),
        ("²\nq\n".encode(), 1, "is no answer"),
        (b"0\n99999999999999999999\nb\nq\n", 1, "is no answer"),
    ],
)
def test_who_gives_up_gets_no_advice(cli: Cli, lines: bytes, code: int, said: str) -> None:
    done = type_in(cli, lines)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_on_a_terminal(cli: Cli) -> None:
    with Screen(cli.environment, (HOLDFAST, "advise")) as screen:
        screen.until("What do you want to be sure of?")
        screen.until("answer")
        screen.type("once\n")
        screen.until("Where is the effect of the work?")
        screen.until("answer")
        screen.type("?\n")
        screen.until("exactly-once by that database")
        screen.type("1\n")
        screen.until("ON CONFLICT DO NOTHING")
        assert screen.end() == 0


def test_ctrl_c_ends_it_politely(cli: Cli) -> None:
    with Screen(cli.environment, (HOLDFAST, "advise")) as screen:
        screen.until("answer")
        screen.type(CTRL_C)
        assert "Traceback" not in screen.until("no advice")
        assert screen.end() == 130


def test_ctrl_d_ends_it_politely(cli: Cli) -> None:
    with Screen(cli.environment, (HOLDFAST, "advise")) as screen:
        screen.until("answer")
        screen.type("\x04")
        screen.until("the input ended before 'need' was answered")
        assert screen.end() == 64


def test_a_reader_that_goes_away_is_no_traceback(cli: Cli) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [HOLDFAST, "advise", "--markdown"],
        env=cli.environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=LONG,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
