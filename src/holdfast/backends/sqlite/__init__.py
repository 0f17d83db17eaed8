"""The embedded engine: one SQLite file for the processes of one machine."""
