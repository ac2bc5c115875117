"""The live files of a version: rows of the log as a DataFrame, and one table of them in the driver's memory."""
