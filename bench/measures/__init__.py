"""One module for each measurement: a function that takes an engine's contenders and returns results."""
