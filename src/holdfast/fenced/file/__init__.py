"""The fence for a file."""

from .fence import FencedFile, FileClaim

__all__ = ["FencedFile", "FileClaim"]
