"""One module per procedure, and their registry."""
