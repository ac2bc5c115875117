"""Conditions on rows: one tree, made from SQL or from the shim's JSON, and one table of operators. No Spark."""
