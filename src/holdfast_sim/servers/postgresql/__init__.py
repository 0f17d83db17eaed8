"""A simulated PostgreSQL: its protocol, our statements, its advisory locks; and libpq's handle to speak to it."""
