"""The contract, one file per promise. Each function is played on every engine, with threads and with tasks."""
