"""The tables and statements of the event log in SQLite."""
