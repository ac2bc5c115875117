"""Control characters in texts."""

import sys

import pytest

from catalog.control_characters import without_control_characters


@pytest.mark.parametrize("text", ["", "a b", "é ß 表", "\N{FAMILY}\u200d\N{BOY}", "a\u00a0b"])
def test_other_texts_are_unchanged(text):
    assert without_control_characters(text) == text


def test_all_control_characters_are_replaced():
    found = {code for code in range(sys.maxunicode + 1) if without_control_characters(chr(code)) != chr(code)}
    ends = {code for code in found if len(f"a{chr(code)}b".splitlines()) == 2}
    assert ends == {code for code in range(sys.maxunicode + 1) if len(f"a{chr(code)}b".splitlines()) == 2}
    assert found == {*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000)}
    assert without_control_characters("a\r\n\x1b[31mb") == "a [31mb"
