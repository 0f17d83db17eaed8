"""The classic failures, one file each."""
