"""Torture: real engines, real processes, real faults; every operation is recorded, and the history is checked.

1. A run is a folder: a file of lines for each client process, one for the controller, the resource (an SQLite file).
   `history` says what the lines mean, `recorder` writes them, `history_reader` merges them.
2. `resource` is what the locks protect, outside the lock engine, under one of three disciplines.
3. `checkers` judge a history and nothing else; they know no engine, and never raise a false alarm.
4. Nothing imports this room but the command line.
"""
