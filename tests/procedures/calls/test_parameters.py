"""Each declared parameter of ``optimize`` changes the plan, and the plan that is shown is the plan that is run."""

from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from catalog.errors import UseError
from procedures.calls.optimize import OPTIMIZE
from procedures.calls.registry import procedures
from procedures.declare.signature import DETAILS
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.planner import TablePlanner
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext
from procedures.selection import DEFAULT_STRATEGIES

DEFAULTS = DEFAULT_ARGUMENTS


def test_a_run_has_the_defaults_of_the_call():
    declared = {p.name: p.default for p in OPTIMIZE.parameters if p.name not in {"table", DETAILS}}
    assert declared == DEFAULTS
    assert list(declared) == list(DEFAULTS)


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Five writes of 30 rows, whose root blocks can rise together, and three unindexed files; never changed."""
    made = shared_table(NUMBERS, index="x,y", cube_size=5000)
    made.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    made.append(numbers(spark, 150, partitions=5), files=5)
    made.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    made.append(numbers(spark, 30, start=150, partitions=3), files=3)
    assert len(made.unindexed) == 3
    return made


def plan(table, **given):
    return TablePlanner(table.managed, OptimizeSettings.of({**DEFAULTS, "table": table.name, **given})).plan(
        PlanRequest()
    )


def outline(found):
    if not found.groups:
        return None
    (group,) = found.groups
    return group.strategy, group.revision_id, len(group.files), group.rows


def test_the_default_takes_unindexed_files_first(table):
    assert outline(plan(table)) == ("UnindexedFiles", 0, 3, 30)


@pytest.mark.quick_sample(7)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"strategy": "LeveledCompaction"}, ("LeveledCompaction", 1, 5, 150)),
        ({"strategy": "LeveledCompaction,UnindexedFiles"}, ("LeveledCompaction", 1, 5, 150)),
        ({"strategy": "UnindexedFiles,LeveledCompaction"}, ("UnindexedFiles", 0, 3, 30)),
        ({"revision_id": 0}, ("UnindexedFiles", 0, 3, 30)),
        # A revision to compact, and what is not indexed yet joins the newest, as with the properties.
        ({"revision_id": 1}, ("UnindexedFiles", 0, 3, 30)),
        ({"revision_id": 1, "strategy": "LeveledCompaction,UnindexedFiles"}, ("LeveledCompaction", 1, 5, 150)),
        ({"revision_id": 1, "strategy": "UnindexedFiles"}, None),
        ({"revision_id": 0, "strategy": "LeveledCompaction"}, None),
        ({"strategy": "LeveledCompaction", "bytes_per_iter": 1}, None),
        ({"bytes_per_iter": 1}, ("UnindexedFiles", 0, 1, 10)),
        ({"options": {"batch_bytes": "1"}}, ("UnindexedFiles", 0, 1, 10)),
        ({"bytes_per_iter": 10**9, "options": {"batch_bytes": "1"}}, ("UnindexedFiles", 0, 1, 10)),
        ({"options": {"from_timestamp": "2999-01-01 00:00:00"}}, ("SortedRunCompaction", 1, 6, 152)),
        ({"strategy": "UnindexedFiles", "options": {"from_timestamp": "2999-01-01"}}, None),
    ],
    ids=str,
)
def test_what_is_selected(table, given, expected):
    assert outline(plan(table, **given)) == expected


@pytest.mark.slow
def test_bytes_per_iter_takes_the_crossing_file_and_names_what_it_passes_over(table):
    smallest = sorted(f.size for f in table.files if f.revision == 1 and f.rows == 30)
    four = plan(table, strategy="LeveledCompaction", bytes_per_iter=sum(smallest[:3]) + 1)
    assert (len(four.groups[0].files), four.skipped) == (4, ())
    # 90 rows are no block of level 2.
    three = plan(table, strategy="LeveledCompaction", bytes_per_iter=sum(smallest[:3]))
    assert three.groups == ()
    assert [(s.reason, s.files) for s in three.skipped] == [("BYTES_PER_ITER_TOO_SMALL", 3)]


@pytest.mark.parametrize("strategy", [None, "UnindexedFiles", "FileList", "UnindexedFiles,RevisionRewrite"])
def test_an_unknown_revision_is_refused(table, strategy):
    files = [table.unindexed[0].path] if strategy == "FileList" else None
    with pytest.raises(UseError) as refused:
        plan(table, revision_id=99, strategy=strategy, files=files)
    assert refused.value.code == "USE_UNKNOWN_REVISION"


def test_bytes_per_iter_takes_the_crossing_file_of_unindexed_ones(table):
    first, second, third = sorted(table.unindexed, key=lambda f: (f.modification_time, f.path))
    both = plan(table, bytes_per_iter=first.size + 1).groups[0]
    assert [f.path for f in both.files] == [first.path, second.path]
    one = plan(table, bytes_per_iter=first.size).groups[0]
    assert [f.path for f in one.files] == [first.path]
    assert third.size > 0


@pytest.mark.slow
def test_the_first_revision_may_be_asked_for_before_it_is_made(spark, new_table):
    """As by ``use-spark optimize --revision-id=1`` on a fresh table."""
    fresh = new_table(NUMBERS, index="x,y").append(numbers(spark, 20))
    with pytest.raises(UseError, match="revision_id: There is no revision '2'"):
        fresh.optimize(revision_id=2)
    assert [(r.state, r.strategy) for r in fresh.optimize(revision_id=1)] == [("committed", "UnindexedFiles")]


@pytest.mark.slow
def test_a_dry_run_shows_the_plan_and_changes_nothing(spark, table):
    before = table.state()
    for given in ({}, {"strategy": "LeveledCompaction"}, {"options": {"batch_bytes": "1"}}):
        group = plan(table, **given).groups[0]
        (row,) = table.optimize(dry_run=True, **given)
        assert (row.state, row.strategy, row.reason) == ("planned", group.strategy, group.reason)
        assert (row.input_files, row.input_bytes, row.rows) == (len(group.files), group.bytes, group.rows)
        assert (row.version, row.output_files) == (table.version, 0)
        assert sum(f.path in row.message for f in group.files) == min(len(group.files), 3)
    assert table.state() == before


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["UnindexedFiles", "LeveledCompaction"])
def test_the_plan_that_was_shown_is_the_plan_that_is_run(spark, new_table, strategy):
    """Even when more files came meanwhile, exactly the plan's files are removed."""
    table = new_table(NUMBERS, index="x,y", cube_size=5000)
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    table.append(numbers(spark, 100, partitions=2), files=2)
    if strategy == "LeveledCompaction":
        table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    planned = plan(table, strategy=strategy)
    (shown,) = table.optimize(strategy=strategy, dry_run=True)
    table.append(numbers(spark, 10, start=100))

    result = rewrite(table.managed, planned.groups[0], RewriteContext())

    assert sorted(table.removed(result.version)) == sorted(f.path for f in planned.groups[0].files)
    assert (shown.input_files, shown.rows) == (len(planned.groups[0].files), result.rows)
    assert {a["path"] for a in table.added(result.version)} <= table.paths
    assert result.output_files == len(table.added(result.version))
    assert table.data.count() == 112


@pytest.mark.slow
def test_limits(spark, new_table):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 60, partitions=6), files=6)
    one = {"strategy": "UnindexedFiles", "options": {"batch_bytes": "1"}}

    def outcome(**limits):
        report = table.optimize(**one, **limits)
        return [(r.state, r.reason) for r in report], report[-1].message

    committed, limit = ("committed", "UNINDEXED"), ("skipped", "LIMIT_REACHED")
    rows, message = outcome(max_iterations=2)
    assert rows == [committed, committed, limit]
    assert "max_iterations = 2" in message
    rows, message = outcome(max_bytes=1)
    assert rows == [committed, limit]
    assert "max_bytes = 1" in message
    rows, message = outcome(max_duration="0.001 seconds")
    assert rows == [committed, limit]
    assert "max_duration" in message
    assert len(table.unindexed) == 2
    # A limit that is not reached changes nothing.
    rows, _ = outcome(max_iterations=9, max_bytes=10**9, max_duration="1 hour")
    assert rows == [committed, committed]


def test_from_timestamp_takes_the_files_modified_since(spark, new_table, set_conf):
    table = new_table(NUMBERS, index="x").append(numbers(spark, 10))
    table.append(numbers(spark, 10, start=10))
    old, new = sorted(table.files, key=lambda f: f.modification_time)
    found = plan(table, options={"from_timestamp": str(new.modification_time)})
    expected = {f.path for f in (old, new) if f.modification_time >= new.modification_time}
    assert {f.path for f in found.groups[0].files} == expected
    # A time without a zone is one of the session, which the plan names.
    moment = datetime.fromtimestamp(new.modification_time / 1000, timezone(timedelta(hours=5, minutes=30)))
    local = moment.replace(tzinfo=None).isoformat(" ")
    for zone, text in (("+05:30", local), ("America/New_York", f"{local} +05:30")):
        set_conf("spark.sql.session.timeZone", zone)
        found = plan(table, options={"from_timestamp": text})
        assert {f.path for f in found.groups[0].files} == expected
        assert f"modified since {local} +05:30" in found.groups[0].note
    set_conf("spark.sql.session.timeZone", "UTC")
    assert not plan(table, options={"from_timestamp": local}).groups
    (row,) = table.optimize(options={"from_timestamp": local})
    assert f"no unindexed files modified since {local} UTC" in row.message


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        ({"where": "z > 1"}, "USE_UNKNOWN_COLUMN", "where: There is no column 'z'"),
        ({"where": "x.y > 1"}, "USE_UNKNOWN_COLUMN", "no column 'x.y'"),
        ({"where": "x + 1"}, "USE_INVALID_ARGUMENT", "where = 'x + 1' is not accepted"),
        ({"where": "nosuchfunction(x)"}, "USE_INVALID_ARGUMENT", "where"),
        ({"files": ["part-0.parquet"]}, "USE_UNKNOWN_FILE", "no file 'part-0.parquet'"),
        ({"files": ["x"]}, "USE_UNKNOWN_FILE", ".parquet and others."),
    ],
    ids=str,
)
def test_what_the_table_does_not_have_is_refused_before_anything_is_touched(table, given, code, named):
    before = table.state()
    with pytest.raises(UseError) as refused:
        table.optimize(**given)
    assert refused.value.code == code
    assert named in refused.value.message
    assert table.state() == before


def test_where_leaves_out_files_that_cannot_hold_such_rows(table):
    newest = {f.path for f in table.unindexed if f.stats["maxValues"]["id"] >= 170}
    assert 0 < len(newest) < 3
    found = plan(table, where="id >= 170").groups[0]
    assert (found.strategy, {f.path for f in found.files}) == ("UnindexedFiles", newest)
    assert outline(plan(table, where="id BETWEEN 5 AND 115")) == ("SortedRunCompaction", 1, 4, 120)
    assert outline(plan(table, where="id > 1000")) is None
    (row,) = table.optimize(where="id > 1000", dry_run=True)
    assert row.reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_files_are_the_only_candidates(table):
    one, two = sorted(f.path for f in table.unindexed)[:2]
    indexed = next(f.path for f in table.files if f.revision == 1 and f.rows == 30)
    assert [f.path for f in plan(table, files=[two], strategy="UnindexedFiles").groups[0].files] == [two]
    assert outline(plan(table, files=[one], strategy="LeveledCompaction")) is None
    named = plan(table, files=[one, str(table.path / two), indexed, one])
    assert [f.path for f in named.groups[0].files] == [one, two]
    assert (named.groups[0].strategy, named.groups[0].revision_id, named.groups[0].reason) == (
        "FileList",
        0,
        "NAMED_FILES",
    )
    both = plan(table, files=[one, indexed], revision_id=1)
    assert (both.groups[0].revision_id, [f.path for f in both.groups[0].files]) == (1, [indexed])


@pytest.mark.slow
def test_named_files_are_rewritten_once_each_revision_by_itself(spark, new_table):
    made = new_table("p STRING, " + NUMBERS, index="x,y", cube_size=5000, tail="PARTITIONED BY (p)")
    spaced = numbers(spark, 60, partitions=2).select(F.lit("a b+c%20").alias("p"), "*")
    made.append(spaced, files=2).index()
    made.append(spaced.withColumn("id", F.col("id") + 60), files=2)
    before = made.checksum()
    indexed = next(f.path for f in made.files if f.revision == 1)
    encoded, plain = sorted(f.path for f in made.unindexed)
    report = made.optimize(files=[encoded, unquote(plain), f"file://{made.path}/{unquote(indexed)}"])
    assert [(r.state, r.strategy, r.input_files, r.rows) for r in report] == [
        ("committed", "FileList", 2, 60),
        ("committed", "FileList", 1, 60),
    ]
    assert not {encoded, plain, indexed} & {f.path for f in made.files}
    assert made.checksum() == before


def test_rows_fit_a_terminal_without_details(spark, table):
    """As ``show()`` prints them: values are cut after 20 characters."""
    shown = []
    for call in (
        f"optimize('{table.name}', dry_run => true",
        f"compact('{table.name}', dry_run => true",
        "status(null",
    ):
        short, long = (spark.sql(f"CALL use.{call}, details => {details})") for details in ("false", "true"))
        name = call.partition("(")[0]
        assert long.columns == [column.split()[0] for column in procedures()[name].result.split(", ")]
        assert short.columns == [column for column in long.columns if column in short.columns]
        assert set(long.columns) - set(short.columns) >= (
            {"location", "lease_holder"} if name == "status" else {"output_bytes"}
        )
        shown.append(max(map(len, short._show_string().splitlines())))
    assert max(shown) <= 125
    (row,) = table.optimize(dry_run=True)
    assert (row.iteration, row.rows) == (1, 30)


def test_the_help_names_the_strategies_of_the_default():
    (strategy,) = (parameter for parameter in OPTIMIZE.parameters if parameter.name == "strategy")
    assert f"; {', '.join(DEFAULT_STRATEGIES)} by default" in strategy.doc


def test_every_parameter_has_a_test_here():
    elsewhere = {"plan", "groups", "quiet_period"}  # see test_stored_plan.py, test_quiet_period.py
    tested = elsewhere | {
        "table", "strategy", "revision_id", "bytes_per_iter", "max_iterations", "max_bytes", "max_duration", "where",
        "files", "revision_rewrite", "parallelism", "dry_run", "options",
        "details",
    }  # fmt: skip
    assert {p.name for p in OPTIMIZE.parameters} == tested


@pytest.mark.slow
def test_file_size_and_cube_size_change_the_layout(spark, new_table):
    def layout(**sizes):
        table = new_table(NUMBERS, index="x,y", **sizes).append(numbers(spark, 3000))
        table.index()
        return len(table.files), len({b.cube_id for f in table.files for b in f.blocks})

    usual = layout()
    small_files = layout(file_bytes="10kb")
    small_cubes = layout(cube_size=100)
    assert usual == (1, 1)
    assert small_files[0] > 3
    assert small_cubes[0] == 1
    assert small_cubes[1] > 10


@pytest.mark.slow
def test_order_of_unindexed_files_is_by_time(spark, new_table):
    table = new_table(NUMBERS, index="x").append(numbers(spark, 20, partitions=2), files=2)
    table.append(numbers(spark, 10, start=20))
    group = plan(table).groups[0]
    times = [f.first_time for f in group.files]
    assert times == sorted(times)
    assert table.managed.snapshot().files.agg(F.min("modification_time")).collect()[0][0] == times[0]
