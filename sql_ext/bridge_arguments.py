"""Arguments of the shim's requests: read into typed values, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_type_hints

from pyspark.sql.types import StructType

from procedures.service.metadata_changes import TableMetadata

_Arguments = TypeVar("_Arguments", bound="Arguments")


class MalformedQuestionError(ValueError):
    """The shim and the Python package do not fit together: they come from different versions."""


class _WrongValueError(ValueError):
    """A value is not what a field takes."""


def _of_type(kind: type, accepted: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        # A boolean is an int of Python's, and no number of the shim's.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _WrongValueError(accepted)
        return value

    return parse


_text = _of_type(str, "a text")
_integer = _of_type(int, "a whole number")
_boolean = _of_type(bool, "a boolean")
_mapping = _of_type(dict, "a map")


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _WrongValueError("a number")
    return float(value)


def _java_object(value: Any) -> Any:
    if value is None:
        raise _WrongValueError("an object of the shim")
    return value


def _json(value: Any, kind: type, accepted: str) -> Any:
    try:
        parsed = json.loads(_text(value))
    except ValueError as error:
        raise _WrongValueError(accepted) from error
    if not isinstance(parsed, kind):
        raise _WrongValueError(accepted)
    return parsed


def _json_map(value: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = _json(value, dict, "a JSON object")
    return parsed


def _json_texts(value: Any) -> tuple[str, ...]:
    parsed = _json(value, list, "a JSON array of texts")
    if not all(isinstance(item, str) for item in parsed):
        raise _WrongValueError("a JSON array of texts")
    return tuple(parsed)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in _text(value).split(",") if name)


def _schema(value: Any) -> StructType:
    try:
        return StructType.fromJson(_json_map(value))
    except (KeyError, TypeError) as error:
        raise _WrongValueError("the JSON of a schema") from error


def _metadata(value: Any) -> TableMetadata:
    facts = _json_map(value)
    try:
        schema = _schema(facts["schema"]) if facts["schema"] else StructType()
        return TableMetadata(facts["configuration"], schema, tuple(facts["partition_columns"]))
    except (KeyError, TypeError) as error:
        raise _WrongValueError("a JSON object with configuration, schema and partition_columns") from error


# How the shim sends the values of a field: the type of the field, and what reads the value.
Text: TypeAlias = Annotated[str, _text]
Integer: TypeAlias = Annotated[int, _integer]
Boolean: TypeAlias = Annotated[bool, _boolean]
Map: TypeAlias = Annotated[Mapping[str, Any], _mapping]
Fraction: TypeAlias = Annotated[float, _fraction]
JavaObject: TypeAlias = Annotated[object, _java_object]
JsonMap: TypeAlias = Annotated[Mapping[str, Any], _json_map]
JsonTexts: TypeAlias = Annotated[tuple[str, ...], _json_texts]
Names: TypeAlias = Annotated[tuple[str, ...], _names]
JsonSchema: TypeAlias = Annotated[StructType, _schema]
JsonMetadata: TypeAlias = Annotated[TableMetadata, _metadata]


# Every scan of a query makes a request, and resolving annotations takes longer than reading the values.
@cache
def _parsers_of(kind: type[Arguments]) -> Mapping[str, Callable[[Any], Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in kind.argument_names()}


@dataclass(frozen=True)
class Arguments:
    """The arguments of an operation; the fields of a subclass are the keys that the shim sends."""

    operation: ClassVar[str]

    @classmethod
    def argument_names(cls) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(f.name for f in fields(cls))

    @classmethod
    def parse(cls: type[_Arguments], arguments: Mapping[str, Any]) -> _Arguments:
        """Reads what the shim has sent.

        Args:
            arguments: values by name.

        Raises:
            MalformedQuestionError: an argument is missing, unknown, or has a value of another kind.
        """
        missing, unknown = set(cls.argument_names()) - set(arguments), set(arguments) - set(cls.argument_names())
        if missing or unknown:
            raise MalformedQuestionError(
                f"The shim asks {cls.operation} with {', '.join(sorted(arguments)) or 'no arguments'}; "
                f"accepted: {', '.join(cls.argument_names())}. Install a shim and a Python package of one version."
            )
        return cls(**{key: cls._parsed(key, arguments[key]) for key in cls.argument_names()})

    @classmethod
    def _parsed(cls, key: str, value: Any) -> Any:
        try:
            return _parsers_of(cls)[key](value)  # type: ignore[arg-type] # mypy takes the hash of instances for that of the class
        except _WrongValueError as error:
            raise MalformedQuestionError(
                f"The shim asks {cls.operation} with {key} = {value!r:.200}; accepted: {error}."
            ) from error
