"""Answers of aggregate queries within a tolerance, from prefixes of the weights."""
