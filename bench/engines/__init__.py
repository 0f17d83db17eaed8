"""One package for each engine: `ENGINE` in its `__init__`, and a module with `CONTENDERS` for each peer or
floor.
"""
