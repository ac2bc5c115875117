"""Selection of the files that a query or a predicate may need."""
