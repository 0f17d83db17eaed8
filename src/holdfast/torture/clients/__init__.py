"""Client processes: they speak the public API, and record everything they do."""
