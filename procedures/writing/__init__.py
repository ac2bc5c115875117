"""What statements and writers may do to a table, and how their rows are indexed."""
