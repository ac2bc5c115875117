"""Numbers with their nouns and verbs in messages: ``1 file``, ``2 files``."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Returns a number and its noun, in the singular for 1.

    Args:
        number: the number.
        noun: in the singular; its plural ends in ``s``.
    """
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def agreeing(number: int, singular: str, plural: str) -> str:
    """Returns the form of a word that agrees with a number, such as ``is`` or ``are``.

    Args:
        number: the number.
        singular: the form for 1.
        plural: the form for any other number.
    """
    return singular if number == 1 else plural
