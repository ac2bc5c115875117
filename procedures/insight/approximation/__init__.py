"""Estimates of aggregates from samples."""
