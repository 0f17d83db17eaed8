"""The report of a run: tables (plain text and Markdown), JSON and a plot."""
