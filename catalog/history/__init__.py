"""The events of optimizations: their content, storage and parsing."""
