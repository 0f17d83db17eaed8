"""holdfast for threads: the blocking driver and what a user holds."""
