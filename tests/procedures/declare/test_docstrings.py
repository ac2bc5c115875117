"""Docstrings as values."""

from procedures.declare.docstrings import Docstring

TEXT = """Does it, on
    two lines.

    More.

    Args:
        first: One sentence: with
            a colon.
        second: Another.

    Returns:
        A row.

    Raises:
        UseError: it failed.
    """


def test_a_docstring_has_parts():
    parsed = Docstring.of(TEXT)
    assert parsed.summary == "Does it, on two lines."
    assert parsed.arguments == {"first": "One sentence: with a colon.", "second": "Another."}
    assert parsed.outcomes == ("Returns:\n    A row.", "Raises:\n    UseError: it failed.")


def test_the_arguments_of_a_text_are_replaced():
    parsed = Docstring.of(TEXT)
    written = parsed.text({"third": "x" * 80 + " and " + "y" * 30})
    assert Docstring.of(written).arguments == {"third": "x" * 80 + " and " + "y" * 30}
    assert written.startswith("Does it, on\ntwo lines.\n\nMore.\n\nArgs:\n    third:")
    assert written.endswith("\n\nReturns:\n    A row.\n\nRaises:\n    UseError: it failed.")
    assert Docstring.of("Does it.").text({}) == "Does it."
