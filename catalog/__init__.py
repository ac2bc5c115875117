"""What is known of tables: files and blocks, typed properties, events, virtual tables."""
