"""Workloads, candidates and estimates of ``use.recommend``."""
