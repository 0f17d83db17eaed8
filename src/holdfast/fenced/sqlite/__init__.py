"""The fence for rows of an SQLite database."""

from .fence import SQLiteFence
from .programs import schema

__all__ = ["SQLiteFence", "schema"]
