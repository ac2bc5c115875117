"""A simulator of tables, stores, clocks and processes, on which the product's code runs without Spark."""
