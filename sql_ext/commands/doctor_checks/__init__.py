"""Checks of ``use-spark doctor``: one file per subject; each check is a function that returns findings."""
