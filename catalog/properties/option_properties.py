"""Table properties that are options of strategies: a prefix, and the name of the option in camelCase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from catalog.settings.setting import Setting


def property_key(prefix: str, option: str) -> str:
    """The key of an option's property; a first word that the prefix has already is not repeated.

    ``tier_ratio`` is ``use.clustering.tierRatio``, ``step_min_files`` is ``….stepConsolidation.minFiles``.

    Args:
        prefix: of the family, with the dot at its end.
        option: name of the option.
    """
    family = prefix.removesuffix(".").rsplit(".", 1)[-1]
    first_word = re.match("[a-z]*", family)
    word, *others = option.removeprefix(f"{first_word[0]}_" if first_word else "").split("_")
    return prefix + word + "".join(map(str.capitalize, others))


def properties_of(
    prefix: str, *options: Setting[Any], aliases: Mapping[str, str] | None = None
) -> dict[str, Setting[Any]]:
    """The properties of options, by the name of the option.

    Args:
        prefix: of the family, with the dot at its end.
        options: their declarations.
        aliases: keys, without the prefix, that earlier versions had, by the name of the option.
    """
    former = aliases or {}
    return {
        option.name: replace(
            option,
            name=property_key(prefix, option.name),
            aliases=(prefix + former[option.name],) if option.name in former else (),
        )
        for option in options
    }


def options_given(properties: Mapping[str, Setting[Any]], values: Mapping[str, str]) -> dict[str, str]:
    """The options that a table's properties set, as they are written.

    Args:
        properties: see ``properties_of``.
        values: properties of a table.

    Raises:
        UseError: a value is not accepted.
    """
    given = {}
    for option, setting in properties.items():
        key = setting.key_in(values)
        if key is not None:
            setting.optional_value(values)
            given[option] = values[key]
    return given
