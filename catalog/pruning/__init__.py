"""Which files a query or a predicate may need."""
