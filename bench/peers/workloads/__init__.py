"""What the systems are given: one module for each workload."""
