"""Arguments of procedures, in SQL and on the command line, and names of tables and columns."""

from __future__ import annotations

import contextlib
import io
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import click

from catalog.columns.column_names import find_column, is_in, split_names, written_name
from catalog.columns.key_columns import key_order
from catalog.errors import TableError
from catalog.locations import place_of
from catalog.similar_names import nearest_names
from catalog.sql_names import name_parts, quoted
from catalog.table.named_files import spellings
from inputs.cases import Reader
from inputs.mutations import ODD_VALUES, any_text, changed_text, odd_text
from inputs.property_inputs import SCHEMA
from procedures.calls.registry import procedure, procedures
from procedures.lifecycle.purge.older_than import parse_older_than
from procedures.loop.optimize_settings import OptimizeSettings
from sql_ext.commands.command_line import cli
from sql_ext.from_log.local_tables import check_table, local_folder
from sql_ext.remote_calls import call_statement

_TEXTS = (
    "db.t", "delta.`/t`", "/t", "s3a://b/t", "UnindexedFiles", "LeveledCompaction,UnindexedFiles",
    "x > 1 AND name = 'a'",
    "10 minutes", "90s", "0", "3 days", "2026-01-31 00:00:00", "name", "id,x", "full", "lite", "0123456789ab", "r-1",
    "SELECT * FROM t WHERE x > 1", "text", "html", "true", "1",
)  # fmt: skip
# They open a port, start processes, or write files that their options name.
_ONLY_PARSED = frozenset({"thrift", "dashboard", "service", "doctor", "diagnose", "completion", "report", "inspect"})
_ONLY_OPTIMIZE = ("table", "details")


def _value(chance: Random, kind: str) -> Any:
    """A value for a parameter: of its type, or of another one."""
    if chance.random() < 0.2:
        others = (
            Decimal("0.5"),
            Decimal("NaN"),
            date(2026, 1, 1),
            datetime(2026, 1, 1, tzinfo=timezone.utc),
            timedelta(days=3),
            b"x",
        )
        return chance.choice((*ODD_VALUES, *others))
    text = any_text(chance, *_TEXTS)
    number = chance.choice((-1, 0, 1, 2, 7, 128, 2**31 - 1, 2**31, 2**63 - 1, 2**63, chance.randrange(10**12)))
    match kind:
        case "INT" | "BIGINT":
            return number
        case "DOUBLE":
            return chance.choice((0.0, 0.01, 0.5, 1.0, -1.0, 1e-300, 1e308, float("nan"), float("inf"), number))
        case "BOOLEAN":
            return chance.choice((True, False, 1, "true"))
        case "ARRAY<STRING>":
            return [any_text(chance, *_TEXTS) for _ in range(chance.randrange(4))]
        case "ARRAY<BIGINT>":
            return [number for _ in range(chance.randrange(4))]
        case "MAP<STRING,STRING>":
            options = ("batch_bytes", "min_files", "target_file_bytes", "max_read_cost", text)
            return {chance.choice(options): any_text(chance, "1", "128MB", "0.5") for _ in range(chance.randrange(3))}
    return text


def _call(chance: Random) -> tuple[str, dict[str, Any]]:
    name = chance.choice(sorted(procedures()))
    parameters = procedures()[name].parameters
    wanted = [p for p in parameters if p.required or chance.random() < 0.4]
    arguments = {p.name: _value(chance, p.type) for p in wanted}
    if chance.random() < 0.1:
        arguments[odd_text(chance)] = 1
    return (name if chance.random() < 0.95 else changed_text(chance, name)), arguments


def _read_call(made: tuple[str, dict[str, Any]]) -> None:
    name, arguments = made
    declared = procedure(name)
    checked = declared.checked(arguments)
    if name in ("optimize", "plan"):
        OptimizeSettings.of({key: value for key, value in checked.items() if key not in _ONLY_OPTIMIZE})
    call_statement(name, {k: v for k, v in checked.items() if isinstance(v, (str, int, float, bool, list, dict))})


class _NoSession:
    """A runner that has no session, and answers with no rows."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: []


def _command(chance: Random) -> tuple[str, list[str]]:
    name = chance.choice(sorted(cli.commands))
    typed: list[str] = []
    for parameter in cli.commands[name].params:
        if chance.random() > (0.8 if parameter.required else 0.25):
            continue
        option = chance.choice(parameter.opts) if isinstance(parameter, click.Option) else None
        text = any_text(chance, *_TEXTS, "a=b", "spark.master=local", "spark.qbeast.use.progress=x", "3", "0.5")
        typed += [text] if option is None else chance.choice(([option], [option, text], [f"{option}={text}"]))
    if chance.random() < 0.1:
        typed.insert(chance.randrange(len(typed) + 1), odd_text(chance))
    # A process gets no argument with a null byte, or one that cannot be encoded.
    return name, [text.replace("\0", "").encode("utf-8", "replace").decode() for text in typed]


def _read_command(made: tuple[str, list[str]]) -> None:
    name, typed = made
    command = cli.commands[name]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        command.make_context(name, list(typed), obj=_NoSession()) as context,
    ):
        if name not in _ONLY_PARSED:
            command.invoke(context)


def _names(chance: Random) -> str:
    return any_text(
        chance, "a.b", "`a b`.c", "delta.`/a``b`", "spark_catalog.db.t", "x@v3", "t VERSION AS OF 3", "file:/t"
    )


def _read_names(text: str) -> None:
    parts = name_parts(text)
    assert name_parts(".".join(map(quoted, parts))) == parts
    place_of(text, lambda: "file:///")
    spellings(text, "file:/t")
    nearest_names(text, ["optimize", "plan", "vacuum"])
    raise TableError.missing(text, text)


def _read_path(text: str) -> None:
    folder = local_folder(text, {"SPARK_CONF_DIR": "/nowhere"})
    if folder is not None:
        check_table(text, folder)


def _read_columns(made: tuple[str, str]) -> None:
    text, order = made
    is_in(text, {"id", "x"})
    found = find_column(SCHEMA, text)
    if found is not None:
        again = find_column(SCHEMA, written_name(SCHEMA, found))
        assert again is not None
        assert again.path == found.path
    with contextlib.suppress(ValueError):
        split_names(text)
    key_order(SCHEMA, ("primary_key", text), ("order_by", order))


def _columns(chance: Random) -> tuple[str, str]:
    return any_text(chance, "id,`a b`", "s.f", "`x.y`", "s.`g``h`", "name"), any_text(chance, "x", "at", "map", "s")


def _older_than(chance: Random) -> Any:
    if chance.random() < 0.3:
        return _value(chance, "STRING")
    return any_text(chance, "3 days", "INTERVAL '3' DAY", "2026-01-31 00:00:00", "17", "2026-01-31", "interval 1 hour")


def readers() -> list[Reader]:
    """The readers of arguments and names."""
    ends = (click.ClickException, click.exceptions.Exit, click.exceptions.Abort)
    return [
        Reader("arguments: procedures", _call, _read_call, share=12),
        Reader("arguments: commands", _command, _read_command, ends, share=8),
        Reader("arguments: history to keep", _older_than, parse_older_than),
        Reader("names: tables", _names, _read_names, share=6),
        Reader(
            "names: paths", lambda chance: any_text(chance, "/t", "file:/t", "delta.`/t`", str(Path.cwd())), _read_path
        ),
        Reader("names: columns", _columns, _read_columns),
    ]
