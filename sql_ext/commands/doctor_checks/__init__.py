"""What ``use-spark doctor`` looks at: one file per subject, each check a function that returns findings."""
