"""``use-spark``: the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import InvalidArgumentError, NotSupportedError, UnknownNameError, UseError, first_line
from procedures.declaration import Procedure
from procedures.optimize import OPTIMIZE
from sql_ext.command_options import KEY_VALUE, option_of
from sql_ext.command_output import ExitCode, Row, outcome_of, print_rows, say
from sql_ext.command_runs import Runner, SessionWishes
from sql_ext.configuration import spark_conf

DEFAULT_STRATEGY = "CubeDefragmentation"
INTERVAL_KEY = "spark.qbeast.use.optimization-interval"
LISTENER_INTERVAL_KEY = "spark.qbeast.use.listener-interval"
MAX_TABLES_KEY = "spark.qbeast.use.service.max-tables"

_TABLE_NAMES = {"table": ("--table-location", "--table")}
_LEVELS = ("OFF", "ERROR", "WARN", "INFO", "DEBUG")
# Wrong arguments, wherever they are noticed; the others of our errors are of the table or the run.
_USAGE_ERRORS = (InvalidArgumentError, UnknownNameError, NotSupportedError)


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
            ["--log-level"],
            type=click.Choice(_LEVELS, case_sensitive=False),
            default="ERROR",
            show_default=True,
            help="What Spark itself logs on standard error.",
        ),
    ]


def output_options() -> list[click.Option]:
    """Options of every command that answers with rows."""
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="One JSON object per row, and nothing else, on stdout."),
        click.Option(
            ["--progress/--no-progress"],
            default=None,
            help="A progress bar on stderr; where that is a terminal when left out.",
        ),
    ]


def rows_command(
    procedure: Procedure,
    run: Callable[[Runner, dict[str, Any], SessionWishes], list[Row]],
    outcome: Callable[[Sequence[Row]], ExitCode],
    defaults: Mapping[str, Any] | None = None,
) -> click.Command:
    """A command made of a procedure's declaration: its parameters are the options, its rows the output.

    Args:
        procedure: gives name, help and parameters.
        run: does it.
        outcome: the exit code for the rows.
        defaults: sentences on defaults that differ from the procedure's, by parameter, for the help.
    """

    def command(ctx: click.Context, /, **given: Any) -> None:
        wishes = _wishes(given, given.pop("progress"))
        as_json = given.pop("as_json")
        rows = _guarded(lambda: run(_runner(ctx), given, wishes))
        print_rows(rows, as_json)
        code = outcome(rows)
        if rows and code != ExitCode.DONE:
            say(f"{rows[-1]['reason']}: {rows[-1]['message']}")
        ctx.exit(code)

    options = [option_of(p, _TABLE_NAMES) for p in procedure.parameters]
    for option in options:
        note = (defaults or {}).get(option.name or "")
        option.help = f"{option.help} {note}" if note else option.help
    return click.Command(
        procedure.name.replace("_", "-"),
        callback=click.pass_context(command),
        params=[*options, *output_options(), *session_options()],
        help=procedure.doc,
        epilog="Exit codes: " + ", ".join(f"{c.value} {c.name.lower().replace('_', ' ')}" for c in ExitCode) + ".",
    )


def _optimize(runner: Runner, arguments: dict[str, Any], wishes: SessionWishes) -> list[Row]:
    # Revision 0 has no cubes: the procedure's own default knows what to do with it.
    if arguments["strategy"] is None and arguments["revision_id"] != 0:
        arguments["strategy"] = DEFAULT_STRATEGY
    return runner.optimize(arguments, wishes)


def _wishes(given: dict[str, Any], progress: bool | None = None) -> SessionWishes:
    return SessionWishes(dict(given.pop("conf")), progress, given.pop("log_level").upper())


def _runner(ctx: click.Context) -> Runner:
    """The one that the caller of the command line passed as its object, else one with Spark."""
    return Runner() if ctx.obj is None else cast(Runner, ctx.obj)


def _guarded(work: Callable[[], Any]) -> Any:
    """Does it; an error becomes one line and an exit code."""
    try:
        return work()
    except UseError as error:
        _fail(f"{error.code}: {error.message}", ExitCode.USAGE if isinstance(error, _USAGE_ERRORS) else ExitCode.FAILED)
    except (PySparkException, Py4JError) as error:
        _fail(f"SPARK: {first_line(error)}", ExitCode.FAILED)
    except KeyboardInterrupt:
        _fail("INTERRUPTED: ended at once; groups that were not committed changed nothing", ExitCode.FAILED)


def _fail(text: str, code: ExitCode) -> NoReturn:
    say(text)
    raise click.exceptions.Exit(code)


@click.group(name="use-spark", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="use-spark")
def cli() -> None:
    """Keeps Delta tables on Spark fast: a storage optimizer."""


cli.add_command(
    rows_command(
        OPTIMIZE,
        _optimize,
        outcome_of,
        {"strategy": f"The command line's own default is {DEFAULT_STRATEGY} (UnindexedFiles with --revision-id=0)."},
    )
)


def _service(ctx: click.Context, /, tables: tuple[str, ...], **given: Any) -> None:
    asked = {
        INTERVAL_KEY: given.pop("interval"),
        LISTENER_INTERVAL_KEY: given.pop("listener_interval"),
        MAX_TABLES_KEY: given.pop("max_tables"),
    }
    wishes = _wishes(given)
    conf = {**wishes.conf, **{key: str(value) for key, value in asked.items() if value is not None}}
    runner = _runner(ctx)
    _guarded(lambda: runner.serve(tables, SessionWishes(conf, wishes.progress, wishes.log_level)))


cli.add_command(
    click.Command(
        "service",
        callback=click.pass_context(_service),
        params=[
            click.Option(
                ["--table", "tables"],
                multiple=True,
                metavar="TABLE",
                help="A name or a path; may be repeated. The whole catalog when left out.",
            ),
            click.Option(["--interval"], help=f"Time between two runs, e.g. '10 minutes' ({INTERVAL_KEY})."),
            click.Option(
                ["--listener-interval"],
                help=f"Time between two looks at properties, in milliseconds or as a time ({LISTENER_INTERVAL_KEY}).",
            ),
            click.Option(
                ["--max-tables"],
                type=click.IntRange(min=1),
                help=f"Tables optimized at the same time ({MAX_TABLES_KEY}).",
            ),
            *session_options(),
        ],
        help="Optimizes tables that ask for it by their properties, until SIGINT or SIGTERM; then it ends at a "
        "boundary between groups.",
    )
)


@cli.command("conf")
def _conf() -> None:
    """Prints the settings that spark-submit --properties-file needs."""
    for key, value in _guarded(spark_conf).items():
        click.echo(f"{key}={value}")


def main() -> None:
    """Entry point: keeps standard output for rows, whatever Spark's processes print."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.stdout = out
        cli()
