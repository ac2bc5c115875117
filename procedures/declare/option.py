"""Options of strategies, made of the settings that declare them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from catalog.errors import InvalidArgumentError
from catalog.settings.setting import OF_SQL_TYPE, TEXT, Setting
from procedures.declare.signature import Parameter, expected


@dataclass(frozen=True)
class Option(Parameter):
    """An option that a ``Setting`` declares: its type with its range, its default and its sentence.

    Attributes:
        setting: the declaration.
    """

    setting: Setting[Any] = field(kw_only=True)


def option(setting: Setting[Any], *, required: bool = False) -> Option:
    """The option of a strategy that a setting declares.

    Args:
        setting: its name is that of the option.
        required: whether the caller must give it.
    """
    kind, text = setting.type, setting.default
    default = text if text is None or kind.sql_type == "STRING" else kind.read(text)
    more: dict[str, Any] = {} if required else {"default": default}
    accepted = "" if kind is TEXT else kind.accepted
    return Option(setting.name, kind.sql_type, setting.doc, accepted=accepted, setting=setting, **more)


def option_value(option: Parameter, text: str | None) -> Any:
    """The value of a strategy's option.

    Args:
        option: its declaration; users' own strategies have a ``Parameter``, whose type says what is accepted.
        text: what the caller gives; None = the default.

    Raises:
        InvalidArgumentError: it is not accepted, or is required and missing.
    """
    if text is None and option.required:
        needed = f"{expected(option.type, 'required')}: {option.doc.rstrip('.')}"
        raise InvalidArgumentError.missing(option.name, needed)
    if isinstance(option, Option):
        written = option.setting.default if text is None else text
        return None if written is None else option.setting.parse(written)
    return option.default if text is None else OF_SQL_TYPE.get(option.type, TEXT).parse(option.name, text)
