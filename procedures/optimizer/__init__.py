"""The loop behind ``use.optimize``: settings, plans, groups at work, reports."""
