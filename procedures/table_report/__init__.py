"""Reports of tables: one page with pictures and numbers, which needs no network."""
