"""docs/doctor.md: its table of all checks, made of the catalogue."""

from __future__ import annotations

from .finding import catalogue

MARK = "<!-- made by `python -m holdfast.doctor.page docs/doctor.md`; tests/doctor/test_page.py compares -->"
ENGINES = {
    "client": "This process",
    "engine": "Every engine",
    "redis": "Redis",
    "redlock": "Redlock",
    "etcd": "etcd",
    "zookeeper": "ZooKeeper",
    "postgresql": "PostgreSQL",
    "mysql": "MariaDB",
    "sqlite": "SQLite",
    "experiment": "By experiment",
}


def tables() -> str:
    """One table for each engine, in Markdown."""
    lines = []
    for prefix, engine in ENGINES.items():
        checks = {name: text for name, text in catalogue().items() if name.partition(".")[0] == prefix}
        if checks:
            lines += [
                f"### {engine}",
                "",
                "| id | looks at | why it matters for locks | what to do |",
                "|---|---|---|---|",
            ]
            lines += [f"| `{name}` | {each.title} | {each.why} | {each.remedy} |" for name, each in checks.items()]
            lines += [""]
    return "\n".join(lines)


def main() -> None:
    """Write the tables into docs/doctor.md, which is named by the one argument."""
    import sys
    from pathlib import Path

    file = Path(sys.argv[1])
    head, mark, _ = file.read_text("utf-8").partition(MARK)
    file.write_text(f"{head}{mark}\n\n{tables()}", "utf-8")


if __name__ == "__main__":
    main()
