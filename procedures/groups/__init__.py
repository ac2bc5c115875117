"""Groups of files that are rewritten together, plans, and the arithmetic that cuts and judges them."""
