"""Explanations of which files a query skips and which conditions do not help."""
