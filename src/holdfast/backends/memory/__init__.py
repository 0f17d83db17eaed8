"""The reference engine: lines in this process, for tests and for threads and tasks of one process."""
