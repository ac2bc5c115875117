"""A page to watch: the tables under automatic optimization in a browser, read-only."""
