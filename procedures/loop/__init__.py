"""The loop of ``use.optimize``: settings, plans, runs, reports."""
