"""What the simulated PostgreSQL and the simulated MariaDB share: the tables behind our statements, and their locks."""
