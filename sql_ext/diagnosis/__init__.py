"""What an index would change for a table, from read access alone: no Spark, no JVM, nothing is written."""
