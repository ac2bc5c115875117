"""Thrift's compact protocol, as far as Parquet's footers and page indexes use it.

Source:
    The specification of the compact protocol in Apache Thrift (doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

Struct: TypeAlias = dict[int, Any]
"""Values by the numbers of their fields; strings are bytes, and structs are ``Struct``."""

_TRUE, _FALSE = 1, 2
_DEEPEST = 30


def read_struct(data: bytes) -> Struct:
    """Reads the struct at the beginning of some bytes.

    Args:
        data: may have more after the struct.

    Raises:
        ValueError: they are no such struct.
    """
    try:
        return _Reader(data).struct(0)
    except (IndexError, struct.error, RecursionError) as error:
        raise ValueError("no struct of the compact protocol") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def struct(self, depth: int) -> Struct:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        found: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 0x0F
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:  # only inside of lists, where a boolean has a byte of its own
                return self._byte() == _TRUE
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return struct.unpack("<d", self._bytes(8))[0]
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                return self._list(depth)
            case 11:
                return self._map(depth)
            case 12:
                return self.struct(depth + 1)
        raise ValueError(f"unknown type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._data):
            raise ValueError("a list is longer than the data")
        return [self._value(head & 0x0F, depth + 1) for _ in range(size)]

    def _map(self, depth: int) -> dict[Any, Any]:
        size = self._varint()
        if size > len(self._data):
            raise ValueError("a map is longer than the data")
        kinds = self._byte() if size else 0
        return {self._value(kinds >> 4, depth + 1): self._value(kinds & 0x0F, depth + 1) for _ in range(size)}

    def _byte(self) -> int:
        value = self._data[self._place]
        self._place += 1
        return value

    def _bytes(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._data):
            raise ValueError("a text ends beyond the data")
        value = self._data[self._place : end]
        self._place = end
        return value

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
