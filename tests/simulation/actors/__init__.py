"""The processes of a history."""
