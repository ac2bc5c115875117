"""Numbers with their nouns in messages."""

from catalog.counted_nouns import agreeing, counted


def test_only_one_is_singular():
    assert [counted(n, "deleted row") for n in (0, 1, 2)] == ["0 deleted rows", "1 deleted row", "2 deleted rows"]
    assert [agreeing(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]
