"""MariaDB (`mysql://`): the lock table as procedures at the server, and session locks (`mysql+session://`)."""
