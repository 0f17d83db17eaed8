"""A simulated MariaDB, to the byte: its protocol, our statements, its user locks."""
