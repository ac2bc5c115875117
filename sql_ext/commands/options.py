"""Options of commands: generated from the parameters of procedures, and shared ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.errors import InvalidArgumentError, UseError
from catalog.settings.session_settings import PROGRESS, SESSION_SETTINGS
from catalog.settings.setting import Setting
from catalog.similar_names import nearest_name
from procedures.declare.signature import Parameter
from sql_ext.commands.output import OutputFormat

# Parameters with names of tables.
_TABLES = ("table", "tables")
_TYPES: dict[str, click.ParamType[Any]] = {
    "STRING": click.STRING,
    "INT": click.INT,
    "BIGINT": click.INT,
    "DOUBLE": click.FLOAT,
    "BOOLEAN": click.BOOL,
    "ARRAY<STRING>": click.STRING,
    "ARRAY<BIGINT>": click.INT,
}


if TYPE_CHECKING:
    _Pair = click.ParamType[tuple[str, str]]
else:
    _Pair = click.ParamType  # older ones are not generic


class KeyValue(_Pair):
    """``key=value``: an entry of a map or a setting of Spark."""

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
_PATH = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:")
# A slash outside of backquotes is in no name of a table.
_RELATIVE_PATH = re.compile(r"[^`]*/[^`]*")
# Settings of USE that a command accepts. Those with the name of a property after it are defaults of that property.
_OF_PROPERTIES = "spark.qbeast."
_PREFIX = PROGRESS.name.rpartition(".")[0] + "."
# Maximum rows of a printed table.
ROWS_SHOWN = 1000
_LEVELS = ("OFF", "ERROR", "WARN", "INFO", "DEBUG")


def option_of(
    parameter: Parameter, synonyms: Mapping[str, tuple[str, ...]] | None = None, *, is_optional: bool = False
) -> click.Option:
    """Returns the option for a parameter, with its name, type, default and documentation.

    A list becomes an option that can be repeated. A list of numbers and a map, whose names are plurals, become options
    in the singular, those of a map with values ``key=value``. A boolean takes ``true`` or ``false``; without a value
    it means ``true``.

    Args:
        parameter: the declaration.
        synonyms: option names that replace the name of a parameter, by parameter.
        is_optional: whether a required table may also be given in another way.
    """
    if is_optional and parameter.name in _TABLES:
        parameter = Parameter(parameter.name, parameter.type, parameter.doc, None)
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
    if parameter.type == "ARRAY<BIGINT>":
        return click.Option(declared, type=click.INT, multiple=True, metavar="NUMBER", **shared)
    if parameter.type == "BOOLEAN":
        shared |= {"is_flag": False, "flag_value": "true", "metavar": "true|false"}
    return click.Option(declared, type=_TYPES[parameter.type], **shared)


def _option_name(parameter: Parameter) -> str:
    is_singular = parameter.type in ("MAP<STRING,STRING>", "ARRAY<BIGINT>")
    name = parameter.name.removesuffix("s") if is_singular else parameter.name
    return "--" + name.replace("_", "-")


def _shows_default(parameter: Parameter) -> bool:
    return not parameter.required and parameter.default is not None and parameter.default != {}


def _checked(parameter: Parameter) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Returns a callback that converts and checks the parsed value as in SQL."""

    def check(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
        if parameter.type == "MAP<STRING,STRING>":
            value = dict(value) or None
        elif parameter.type.startswith("ARRAY"):
            value = list(value) or None
        if parameter.name in _TABLES:
            value = checked_name(ctx, option, value)
        try:
            return parameter.check(value)
        except InvalidArgumentError as error:
            raise click.BadParameter(error.message, ctx, option) from error

    return check


def checked_setting(setting: Setting[object]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Returns a callback that checks the value of an option as the setting does.

    Args:
        setting: the setting that the option makes.
    """

    def check(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
        if value is not None:
            _parse(setting, str(value), ctx, option)
        return value

    return check


def checked_name(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Returns the name of a table, or several names, with relative paths as absolute ones.

    Raises:
        click.BadParameter: a name is blank or malformed, or a relative path names no folder.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(checked_name(ctx, option, name) for name in value)
    if value is None:
        return None
    if not value.strip():
        raise click.BadParameter("it is empty: give a table name or a path.", ctx, option)
    if _PATH.match(value):
        return value
    if value.count("`") % 2:
        raise click.BadParameter(f"a backquote in '{value}' is not closed.", ctx, option)
    if not _RELATIVE_PATH.fullmatch(value):
        return value
    try:
        current = Path.cwd()
    except FileNotFoundError:
        raise click.BadParameter(f"'{value}' is relative to a folder that is gone.", ctx, option) from None
    folder = current / value
    if not folder.is_dir():
        raise click.BadParameter(f"there is no folder '{value}' in {current}.", ctx, option)
    # A path without a scheme would belong to the default file system, which need not be the local one.
    return f"file:{folder.resolve()}"


def _checked_conf(
    ctx: click.Context, option: click.Parameter, entries: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Checks the settings of USE; Spark checks its own."""
    if not entries:
        return entries
    from catalog.properties.names import PROPERTIES, is_inherited
    from procedures.service.service_settings import SERVICE_SETTINGS

    others = {setting.name: setting for setting in (*SESSION_SETTINGS, *SERVICE_SETTINGS)}
    settings = others | {
        f"{_OF_PROPERTIES}{key}": setting.named(f"{_OF_PROPERTIES}{key}")
        for setting in PROPERTIES.values()
        for key in (setting.name, *setting.aliases)
        if is_inherited(key)
    }
    for name, value in entries:
        if name in settings:
            _parse(settings[name], value, ctx, option)
        elif name.startswith(_PREFIX) and not _is_option_of_strategies(name.removeprefix(_OF_PROPERTIES)):
            near = nearest_name(name, settings)
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(others)}, and properties of tables."
            raise click.BadParameter(f"there is no setting '{name}'. {hint}", ctx, option)
    return entries


def _is_option_of_strategies(key: str) -> bool:
    from catalog.properties.names import is_inherited

    with suppress(ModuleNotFoundError):  # without Spark, no session starts that could read them
        import procedures.selection  # noqa: F401 - declares the options
    return is_inherited(key)


def _parse(setting: Setting[object], value: str, ctx: click.Context, option: click.Parameter) -> None:
    try:
        setting.parse(value.strip())
    except UseError as error:
        raise click.BadParameter(error.message, ctx, option) from error


def session_options() -> list[click.Option]:
    """Returns the options of every command that uses Spark."""
    return [
        click.Option(
            ["--conf"],
            type=KEY_VALUE,
            multiple=True,
            metavar="KEY=VALUE",
            callback=_checked_conf,
            help="A setting of Spark, such as spark.master=local[4]. Can be repeated.",
        ),
        click.Option(
            ["--warehouse"],
            type=click.Path(file_okay=False, path_type=Path),
            metavar="FOLDER",
            help="Folder of named tables and their metastore. Created if it is missing.",
        ),
        click.Option(
            ["--log-level"],
            type=click.Choice(_LEVELS, case_sensitive=False),
            default="ERROR",
            show_default=True,
            help="Level of Spark's log on standard error.",
        ),
    ]


def format_options() -> list[click.Option]:
    """Returns the options of every command that prints rows."""
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Prints one JSON object per row."),
        click.Option(["--csv", "as_csv"], is_flag=True, help="Prints a header and the rows as CSV."),
    ]


def output_format_of(options: dict[str, Any]) -> OutputFormat:
    """Removes the values of ``format_options`` from the parsed options and returns the format.

    Raises:
        click.UsageError: two formats were given.
    """
    as_json, as_csv = options.pop("as_json"), options.pop("as_csv")
    if as_json and as_csv:
        raise click.UsageError("--json and --csv are two formats: give only one.")
    return OutputFormat.JSON if as_json else OutputFormat.CSV if as_csv else OutputFormat.TABLE


def progress_option() -> click.Option:
    """Returns the option of commands that rewrite data."""
    return click.Option(
        ["--progress/--no-progress"],
        default=None,
        help="Whether to draw a progress bar on stderr. By default, if stderr is a terminal.",
    )


def limit_option() -> click.Option:
    """Returns the option of commands that may print many rows."""
    return click.Option(
        ["--limit"],
        type=click.IntRange(min=1),
        help=f"Maximum number of rows. By default {ROWS_SHOWN:,}, or all with --json or --csv.",
    )


def examples(*lines: str) -> str:
    """Returns the examples at the end of a command's help.

    Args:
        lines: the examples.
    """
    # "\b" keeps click from joining the lines.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
