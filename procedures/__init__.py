"""What is done to tables: one file per procedure, strategies in ``selection``, rewriting in ``rewrite``."""
