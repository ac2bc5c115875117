"""What stands for Spark and the shim below the product's code; see ``placement`` for what it replaces."""
