"""Random changes of valid inputs, and inputs that are nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

ODD_TEXTS = (
    "", " ", "\n", "\x00", "\ud800", "\u2028", "\ufeff", "a\nb", "é", "１２", "😀", "x" * 10_000, "1" * 5_000,
    "9" * 400, "NaN", "Infinity", "-1", "1e999", "null", "true",
    "`", "``", "'", "''", '"', ";", "--", "/*", "\\", "%2e%2e", "%00",
    "${x}", "$(id)", "a.b.c.d", "*", "?", "'; DROP TABLE t; --", "` OR 1=1 --", "<script>alert(1)</script>",
    "../../outside", "..", ".", "/", "//", "/etc/passwd", "file:/etc/passwd", "s3a://other/bucket", "~", "a/../../b",
    "(" * 2_000, "[" * 2_000, "1s" * 40 + "!", "1" * 40 + "!", "a," * 5_000, "a.b:hashing", "auto",
)  # fmt: skip
"""Texts that readers stumble over: odd characters, other notations, paths, injections, depth and length."""
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**400, 1.5, -0.0, 1e308, float("nan"),
    float("inf"), [], {}, [None], [[]], ["x"] * 1_000, {"a": {"b": {"c": []}}}, [{"a": 1}], *ODD_TEXTS,
)  # fmt: skip
"""Values of the wrong type, and those of the right one that nothing can be done with."""
_NOT_JSON = (
    "", " ", "null", "[]", "{}", '""', "7", "NaN", "-Infinity", "1e999", "1" * 5_000, "\ufeff{}", "[" * 100_000,
    '{"a":' * 50_000, "{}{}", "{'a': 1}", '{"a":1,"a":2}', "\n\n", "{}\n{",
)  # fmt: skip
_MOST_DEPTH = 4


def letters(chance: Random, most: int = 20) -> str:
    """Returns random characters, most of them printable."""
    kinds: Sequence[Callable[[], str]] = (
        lambda: chr(chance.randrange(32, 127)),
        lambda: chr(chance.randrange(0x110000)),
        lambda: chance.choice("0123456789.,:;-+'\"`/\\ \n\t%=()[]{}"),
    )
    return "".join(chance.choices(kinds, (6, 1, 4))[0]() for _ in range(chance.randrange(most + 1)))


def random_bytes(chance: Random, most: int = 200) -> bytes:
    """Returns random bytes."""
    return chance.randbytes(chance.randrange(most + 1))


def odd_text(chance: Random) -> str:
    """Returns a text that no reader accepts, or that has a meaning where none is meant."""
    return chance.choice(ODD_TEXTS) if chance.random() < 0.7 else letters(chance)


def changed_text(chance: Random, sound: str) -> str:
    """Returns a text that a reader accepts, after up to three small changes."""
    text = sound
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randrange(1, 6))
        match chance.randrange(7):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + odd_text(chance) + text[at:]
            case 2:
                text = text[:at] + letters(chance, 3) + text[end:]
            case 3:
                text = text[:end] + text[at:]
            case 4:
                text = text[:at]
            case 5:
                text = text.swapcase()
            case _:
                text += text
    return text[:200_000]


def any_text(chance: Random, *sound: str) -> str:
    """Returns one of some texts, often changed, or an odd one."""
    kind = chance.random()
    if not sound or kind < 0.2:
        return odd_text(chance)
    text = chance.choice(sound)
    return text if kind < 0.35 else changed_text(chance, text)


def changed_bytes(chance: Random, sound: bytes) -> bytes:
    """Returns bytes that a reader accepts, with some of them changed, left out or cut off."""
    data = bytearray(sound)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + 1] = chance.randbytes(1)
            case 1:
                del data[at : at + chance.randrange(1, 9)]
            case 2:
                data[at:at] = random_bytes(chance, 16)
            case _ if chance.random() < 0.3:
                del data[at:]
    return bytes(data)


def changed_value(chance: Random, sound: Any, depth: int = 0) -> Any:
    """Returns a value of JSON with a part replaced, left out, added or moved."""
    value = copy.deepcopy(sound)
    if depth < _MOST_DEPTH and isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        match chance.randrange(8):
            case 0:
                del value[key]
            case 1:
                value[odd_text(chance)] = chance.choice(ODD_VALUES)
            case 2:
                value[key], other = value[chance.choice(sorted(value))], value[key]
                value.setdefault(key, other)
            case _:
                value[key] = changed_value(chance, value[key], depth + 1)
        return value
    if depth < _MOST_DEPTH and isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        match chance.randrange(5):
            case 0:
                del value[at]
            case 1:
                value.append(chance.choice(ODD_VALUES))
            case 2:
                value.insert(at, value[at])
            case _:
                value[at] = changed_value(chance, value[at], depth + 1)
        return value
    if isinstance(value, str) and chance.random() < 0.4:
        return changed_text(chance, value)
    if isinstance(value, int) and not isinstance(value, bool) and chance.random() < 0.4:
        return value + chance.choice((-1, 1, 1000, 10**6, -(10**6), 10**15))
    return chance.choice(ODD_VALUES)


def json_text(chance: Random, sound: Any) -> str:
    """Returns the text of a file in JSON: most often a changed value, sometimes a changed or a different text."""
    kind = chance.random()
    if kind < 0.05:
        return chance.choice(_NOT_JSON)
    if kind < 0.08:
        return letters(chance, 60)
    value = sound
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        value = changed_value(chance, value)
    text = json.dumps(value, separators=(",", ":"))
    return text if kind < 0.85 else changed_text(chance, text)
