"""A Delta table and one version of it: files, blocks, columns and names."""
