"""Declarations of operations and strategies, and the rows that they return."""
