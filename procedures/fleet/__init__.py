"""Which of many tables a shared budget goes to: what rewrites are worth, their order, and what became of them."""
