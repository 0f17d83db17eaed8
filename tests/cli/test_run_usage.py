"""Bad usage of `holdfast run` is told in one line, before anything starts."""

from __future__ import annotations

import pytest

from tests.cli.harness import Cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["job"], "there is no command to run; put it after --"),
        (["job", "--"], "there is no command to run"),
        ([], "missing argument 'NAME'"),
        (["--ttl", "soon", "job", "--", "true"], "'soon' is not a duration; give seconds, as in 30, 1.5, 500ms"),
        (["--ttl", "-3", "job", "--", "true"], "'-3' is not a duration"),
        (["--ttl", "0", "job", "--", "true"], "ttl of 'job' is 0 s; it must be above 0"),
        (["--busy", "maybe", "job", "--", "true"], "'maybe' is not one of 'wait', 'skip', 'fail'"),
        (["--shared", "--permits", "3", "job", "--", "true"], "exclude each other"),
        (["--permits", "0", "job", "--", "true"], "0 is not in the range x>=1"),
        (["--nonsense", "job", "--", "true"], "no such option"),
        (["", "--", "true"], "a name is empty"),
        (["a\tb", "--", "true"], "has a control character"),
        (["--url", "nowhere", "job", "--", "true"], "is not a URL"),
        (["--url", "carrier://pigeon", "job", "--", "true"], "no engine has the scheme 'carrier'"),
        (
            ["--ttl", "10", "--grace", "5", "job", "--", "true"],
            "--grace 5 is too long for --ttl 10: the command must be gone before the lease ends; use --ttl 11",
        ),
    ],
)
def test_bad_usage_is_one_line_and_64(cli: Cli, arguments: list[str], said: str) -> None:
    done = cli.run("run", *arguments)
    assert done.code == 64
    assert said.lower() in done.err.lower()
    assert done.err.startswith("holdfast: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("grace", ["0", "0.1", "1", "5", "60"])
def test_the_ttl_that_is_suggested_is_accepted(cli: Cli, grace: str) -> None:
    refused = cli.run("run", "--ttl", "0.01", "--grace", grace, "job", "--", "true")
    if grace != "0":
        assert refused.code == 64
        suggested = refused.err.split("use --ttl ")[1].split()[0]
        assert cli.run("run", "--ttl", suggested, "--grace", grace, "job", "--", "true").code == 0


def test_a_command_that_is_not_there_is_127(cli: Cli) -> None:
    done = cli.run("run", "job", "--", "no-such-program")
    assert (done.code, done.err) == (127, "holdfast: cannot run 'no-such-program': No such file or directory\n")
    assert cli.is_free("job")


@pytest.mark.parametrize("text", ["", "#!/no/such/interpreter\n"])
def test_a_command_that_can_not_be_executed_is_126(cli: Cli, text: str) -> None:
    script = cli.folder / "script"
    script.write_text(text)
    script.chmod(0o755 if text else 0o644)
    done = cli.run("run", "job", "--", str(script))
    assert done.code == 126
    assert done.err.startswith("holdfast: cannot run ")
    assert cli.is_free("job")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--ttl", "20", "job", "--", "echo", "-n", "--", "x"],
        ["job", "--ttl", "20", "--", "echo", "-n", "--", "x"],
        ["--ttl", "20", "job", "echo", "-n", "--debug", "x"],
    ],
    ids=["options first", "options after the name", "no dashes"],
)
def test_the_commands_own_options_stay_its_own(cli: Cli, arguments: list[str]) -> None:
    done = cli.run("run", *arguments)
    expected = "--debug x" if "--debug" in arguments else "-- x"
    assert (done.code, done.out) == (0, expected)


def test_an_engine_that_can_not_be_opened_is_69(cli: Cli) -> None:
    (cli.folder / "folder").mkdir()
    done = cli.run("run", "--url", f"sqlite://{cli.folder}/folder", "--timeout", "0", "job", "--", "true")
    assert done.code == 69
    assert done.err.startswith("holdfast: ")
    assert done.err.count("\n") == 1


def test_debug_shows_the_traceback(cli: Cli) -> None:
    done = cli.run("run", "--debug", "--url", "carrier://pigeon", "job", "--", "true")
    assert done.code == 64
    assert "Traceback" in done.err
