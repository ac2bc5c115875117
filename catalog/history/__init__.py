"""The events of optimizations: what each holds, where it is kept, and how it is read."""
