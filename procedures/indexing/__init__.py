"""What ``use.index`` needs to opt in a table."""
