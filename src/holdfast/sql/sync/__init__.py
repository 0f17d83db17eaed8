"""The helpers for blocking connections; users import them from `holdfast.sql`."""
