"""Rewriting one group of files: lay out, write, verify, tag and commit."""
