"""Records about a table: its commits (ingestion) and the queries that read it (consumption)."""
