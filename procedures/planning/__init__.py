"""What is worth rewriting, as plans that are made of metadata alone."""
