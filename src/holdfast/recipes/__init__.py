"""The recipes: how each kind of lock is said in claims. Flows and data only; `sync` and `aio` give them bodies."""
