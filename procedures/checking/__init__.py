"""Checks of the index: ``metadata`` reads the log and the file listing, ``rows`` reads the data."""
