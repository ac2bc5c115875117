"""Analyses of a table, its queries and its layout: health, reports, estimates, checks."""
