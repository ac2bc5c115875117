"""Names of columns: spelling, lookup, keys."""
