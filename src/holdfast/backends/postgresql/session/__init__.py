"""Session locks of PostgreSQL (`postgresql+session://`): advisory locks that live with the connection."""
