"""What the log of a table alone tells: its overview and its health, without Spark and without a JVM."""
