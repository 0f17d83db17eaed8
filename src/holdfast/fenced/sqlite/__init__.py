"""The fence for rows of an SQLite database."""
