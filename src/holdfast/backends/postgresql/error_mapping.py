"""What PostgreSQL's errors mean (SQLSTATE)."""

from __future__ import annotations

from ..relational.error_mapping import ErrorMapping

AGAIN = "connect again to have it made, or run the output of `holdfast schema postgresql`"

ERRORS = ErrorMapping(
    "PostgreSQL",
    permanent={
        "42501": "grant this role what the head of `holdfast schema postgresql` names",
        "42P01": f"the lock table is gone; {AGAIN}",
        "42883": f"a function is gone; {AGAIN}",
        "0A000": "ALTER ROLE … SET default_transaction_isolation = 'read committed'",
    },
    gone=frozenset({"25006", "57P01", "57P02", "57P03", "57P04", "57P05"}),
)
