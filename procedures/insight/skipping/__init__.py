"""The reasons of ``use.explain_skipping``."""
