"""Options of commands: those made of a procedure's declared parameters, and those that commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from catalog.errors import InvalidArgumentError
from procedures.declaration import Parameter

_TYPES: dict[str, click.ParamType[Any]] = {
    "STRING": click.STRING,
    "INT": click.INT,
    "BIGINT": click.INT,
    "DOUBLE": click.FLOAT,
    "BOOLEAN": click.BOOL,
    "ARRAY<STRING>": click.STRING,
}


class KeyValue(click.ParamType[tuple[str, str]]):
    """``key=value``, as one entry of a map or one setting of Spark."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Splits at the first ``=``."""
        if isinstance(value, tuple):
            return value
        key, sign, text = str(value).partition("=")
        if not sign or not key.strip():
            self.fail(f"'{value}' is not key=value.", param, ctx)
        return key.strip(), text


KEY_VALUE = KeyValue()
# Of a table for people.
ROWS_SHOWN = 1000
_LEVELS = ("OFF", "ERROR", "WARN", "INFO", "DEBUG")


def option_of(parameter: Parameter, synonyms: Mapping[str, tuple[str, ...]] | None = None) -> click.Option:
    """The option for a parameter: ``--its-name``, of its type, with its default and its sentence as help.

    A list is an option that may be repeated; a map, whose name is a plural, is one that may be repeated in the singular
    with ``key=value``; a boolean takes ``true`` or ``false``, and stands for ``true`` alone.

    Args:
        parameter: as declared.
        synonyms: names of options in place of the parameter's own, by parameter.
    """
    names = (synonyms or {}).get(parameter.name, (_option_name(parameter),))
    shared: dict[str, Any] = {
        "required": parameter.required,
        "help": f"{parameter.doc} Default: {parameter.default_text}." if _shows_default(parameter) else parameter.doc,
        "callback": _checked(parameter),
    }
    declared = [*names, parameter.name]
    if parameter.type == "MAP<STRING,STRING>":
        return click.Option(declared, type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", **shared)
    if parameter.type == "ARRAY<STRING>":
        return click.Option(declared, type=click.STRING, multiple=True, metavar="TEXT", **shared)
    if parameter.type == "BOOLEAN":
        shared |= {"is_flag": False, "flag_value": "true", "metavar": "true|false"}
    return click.Option(declared, type=_TYPES[parameter.type], **shared)


def _option_name(parameter: Parameter) -> str:
    name = parameter.name.removesuffix("s") if parameter.type == "MAP<STRING,STRING>" else parameter.name
    return "--" + name.replace("_", "-")


def _shows_default(parameter: Parameter) -> bool:
    return not parameter.required and parameter.default is not None and parameter.default != {}


def _checked(parameter: Parameter) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Turns what click parsed into the value that the procedure takes, checked as in SQL."""

    def check(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
        if parameter.type == "MAP<STRING,STRING>":
            value = dict(value) or None
        elif parameter.type == "ARRAY<STRING>":
            value = list(value) or None
        try:
            return parameter.check(value)
        except InvalidArgumentError as error:
            raise click.BadParameter(error.message, ctx, option) from error

    return check


def session_options() -> list[click.Option]:
    """Options of every command that works with Spark."""
    return [
        click.Option(
            ["--conf"],
            type=KEY_VALUE,
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of Spark, such as spark.master=local[4]; may be repeated.",
        ),
        click.Option(
            ["--warehouse"],
            type=click.Path(file_okay=False, path_type=Path),
            metavar="FOLDER",
            help="Tables by name live in this folder, and so does their metastore; it is made when missing.",
        ),
        click.Option(
            ["--log-level"],
            type=click.Choice(_LEVELS, case_sensitive=False),
            default="ERROR",
            show_default=True,
            help="What Spark itself logs on standard error.",
        ),
    ]


def json_option() -> click.Option:
    """The option of every command that answers with rows."""
    return click.Option(["--json", "as_json"], is_flag=True, help="One JSON object per row, nothing else on stdout.")


def progress_option() -> click.Option:
    """The option of commands that rewrite data."""
    return click.Option(
        ["--progress/--no-progress"],
        default=None,
        help="A progress bar on stderr; where that is a terminal when left out.",
    )


def limit_option() -> click.Option:
    """The option of commands that may answer with very many rows."""
    return click.Option(
        ["--limit"],
        type=click.IntRange(min=1),
        help=f"Shows at most so many rows; {ROWS_SHOWN:,} when left out, with --json all.",
    )


def examples(*lines: str) -> str:
    """The end of a command's help: what to type, for instance.

    Args:
        lines: one example each.
    """
    # The mark keeps click from joining the lines.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
