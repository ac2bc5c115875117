"""Recommendation of index columns: conditions of queries, simulated layouts and the search among candidates."""
