"""The contract, one file per promise. Each function runs on every engine, with threads and with tasks."""
