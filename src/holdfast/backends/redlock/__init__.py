"""Redlock with fencing tokens: a majority of independent Redis primaries, and ballots for tokens (ADR 11)."""
