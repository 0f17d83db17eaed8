"""Session locks of MariaDB (`mysql+session://`): user locks (GET_LOCK) that live with the connection."""
