"""``use-spark diagnose``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.errors import InvalidArgumentError
from catalog.settings.setting import SIZE
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.hanging_lines import terminal_width
from sql_ext.commands.options import KEY_VALUE, examples
from sql_ext.commands.output import json_text

if TYPE_CHECKING:
    from sql_ext.diagnosis.results import Request

_WIDTH = 110
_SHOWN = 40


def _size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return SIZE.read(value)
    except ValueError as error:
        raise click.BadParameter(f"'{value}' is not accepted: give {SIZE.accepted}.", ctx, option) from error


def _not_blank(ctx: click.Context, argument: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(path.strip() for path in value):
        raise click.BadParameter("it is empty: give a path or a URL.", ctx, argument)
    return value


def _run(paths: tuple[str, ...], request: Callable[[], Request], as_json: bool, html: str | None, limit: int) -> None:
    from procedures.insight.report.page_file import check_page_file, write_page
    from sql_ext.diagnosis.html_page import diagnosis_page
    from sql_ext.diagnosis.many_tables import diagnose_tables
    from sql_ext.diagnosis.text_page import diagnoses_text

    if html is not None:
        check_page_file("--html", html, "a file")
    with _Bar() as bar:
        found = diagnose_tables(paths, request(), bar.show, processes=os.cpu_count() or 1)
    if html is not None:
        write_page(Path(html), diagnosis_page(found))
    if as_json:
        for entry in (*found.to_dict()["tables"], *found.to_dict()["unreadable"]):
            click.echo(json_text(entry))
    elif html is None:
        click.echo(diagnoses_text(found, terminal_width() or _WIDTH, limit))
    else:
        click.echo(html)


def _diagnose(
    paths: tuple[str, ...],
    queries: Path | None,
    budget: int,
    target_file_bytes: int | None,
    storage_options: tuple[tuple[str, str], ...],
    **output: Any,
) -> None:
    def request() -> Request:
        from sql_ext.diagnosis.results import Request

        try:
            text = None if queries is None else queries.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise InvalidArgumentError.of("--queries", str(queries), f"a file that can be read ({reason})") from error
        return Request(budget, target_file_bytes, text, dict(storage_options))

    guarded(lambda: _run(paths, request, **output))


class _Bar:
    """A progress bar on standard error, if that is a terminal and there are several tables."""

    def __enter__(self) -> _Bar:
        self._bar: Any = None
        return self

    def show(self, done: int, tables: int) -> None:
        if self._bar is None:
            if tables < 2 or not sys.stderr.isatty():
                return
            from tqdm import tqdm

            self._bar = tqdm(total=tables, desc="use-spark: diagnose", unit="table", leave=False)
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


COMMAND = click.Command(
    "diagnose",
    callback=_diagnose,
    params=[
        click.Argument(["paths"], nargs=-1, required=True, metavar="PATH...", callback=_not_blank),
        click.Option(
            ["--queries"],
            type=click.Path(path_type=Path),
            help="File with SELECT statements over the one table, separated by semicolons. By default, ranges of "
            "times, keys and names are assumed.",
        ),
        click.Option(
            ["--budget"],
            default="256MB",
            show_default=True,
            callback=_size,
            help="Bytes of data files to read at most, of all tables together.",
        ),
        click.Option(
            ["--target-file-bytes"],
            callback=_size,
            help="Size of the files of an index. By default, that of the table's properties, or 128 MB.",
        ),
        click.Option(
            ["--storage-option", "storage_options"],
            type=KEY_VALUE,
            multiple=True,
            metavar="KEY=VALUE",
            help="Option for the object store. Can be repeated. Environment variables such as AWS_REGION count, too.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Prints one JSON object per table."),
        click.Option(
            ["--html"],
            type=click.Path(dir_okay=False),
            help="Writes a page to this file, which needs no other file. It is a new file, or an earlier page.",
        ),
        click.Option(
            ["--limit"], type=click.IntRange(min=1), default=_SHOWN, show_default=True, help="Tables to show at most."
        ),
    ],
    help="Says what reads of Delta tables cost today, and what an index would change.\n\n"
    "A PATH is a table, or a folder or a prefix with tables: local, or s3://, abfss://, gs://. Read access is enough: "
    "no Spark, no Java and no property are needed. Nothing is written.",
    epilog=examples(
        "use-spark diagnose /data/flights",
        "use-spark diagnose s3://bucket/warehouse --html diagnosis.html",
        "use-spark diagnose /data/flights --queries queries.sql",
    )
    + f"\n\n{exit_codes_text()}",
)
