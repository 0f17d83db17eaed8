"""PostgreSQL: the lock table (`postgresql://`), one function at the server per verb."""
