"""Faults in real Spark sessions, kills of real processes, and bad disks: see ``run.py``."""
