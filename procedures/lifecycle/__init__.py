"""Removal of what a table no longer needs: files, deleted rows, history, log entries."""
