"""Texts of shared folders, in a real file system."""

import pytest
from py4j.protocol import Py4JJavaError

from catalog.jvm.shared_texts import SharedTexts


def test_a_text_is_created_once_and_a_huge_file_is_not_read(spark, tmp_path):
    texts = SharedTexts(spark, (tmp_path / "texts").as_uri())
    assert texts.read("a") is None
    assert [texts.create("a", text) for text in ("first\nsecond", "third")] == [True, False]
    assert (texts.read("a").rstrip("\n"), texts.names()) == ("first\nsecond", ["a"])
    with (tmp_path / "texts" / "huge").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(Py4JJavaError, match="more than 67108864 bytes"):
        texts.read("huge")
