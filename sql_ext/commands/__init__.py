"""``use-spark``, the command line: one file per command, and what they share."""
