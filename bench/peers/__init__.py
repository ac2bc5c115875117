"""A comparison of the systems that lay out tables: `make bench`."""
