"""A run on paper: tables (plain text and Markdown), JSON and a plot."""
