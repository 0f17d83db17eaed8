"""What the engines on a relational database share: PostgreSQL and MariaDB differ in SQL and in driver calls only.

Here is what touches no connection: errors in holdfast's words, the desk of session locks, rows as lock views. What
talks to a server is in `wires/`, which knows an engine by the protocols in `wires/ports.py` and by its codec.
"""
