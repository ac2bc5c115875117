"""Phrases of messages that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Returns a number and its noun, in the plural unless the number is 1.

    Args:
        number: how many.
        noun: in the singular, with a regular plural.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
