"""The facts, pictures and page of ``use.report``."""
