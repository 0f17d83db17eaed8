"""The fence for a file."""
