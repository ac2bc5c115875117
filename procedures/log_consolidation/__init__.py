"""Consolidation of a table's log: one file per mode, and a line in ``MODES``."""
