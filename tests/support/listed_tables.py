"""Snapshots of tables that exist as lists of files only, and what strategies choose from them, without Spark."""

from file_lists import REVISIONS, ListedFile, columns_of
from pyspark.sql.types import StructType

from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.revision import configuration_of
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.groups.group import Group
from procedures.groups.strategy import TableFiles
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings

REVISION = REVISIONS[-1].revision_id
ROOT = ""
_DEFAULTS = DEFAULT_ARGUMENTS
_SCHEMA = StructType().add("id", "long").add("x", "double").add("y", "double")


def cube(*path):
    """Id of the cube that is reached by these children from the root."""
    return CubeId(2, path).text


def file(name, rows_of_cubes, size=10, time=0):
    """An indexed file of a write of its own.

    Args:
        name: of the file.
        rows_of_cubes: rows of its blocks by cube.
        size: bytes.
        time: modification time.
    """
    blocks = tuple((cube_id, MIN_WEIGHT, MAX_WEIGHT, rows) for cube_id, rows in rows_of_cubes.items())
    return ListedFile(name, size, time, REVISION, name, blocks, 0, True, None)


def unindexed(name, size=10, time=0, rows=5):
    """A file that a plain writer appended."""
    return ListedFile(name, size, time, 0, None, ((ROOT, 0, 1, rows),), 0, True, None)


def choice(files, strategy=None, spark=None, **arguments) -> Group | None:
    """What the first strategy that finds files chooses.

    Args:
        files: the files of the table.
        strategy: names of strategies; by default those of ``use.optimize``.
        spark: only for times without a zone.
        arguments: further arguments of ``use.optimize``.
    """
    return next((found for found in findings(files, strategy, spark, **arguments) if isinstance(found, Group)), None)


def findings(files, strategy=None, spark=None, **arguments):
    """What all strategies find, one after another; parameters as of ``choice``."""
    settings = OptimizeSettings.of({**_DEFAULTS, "table": "t", "strategy": strategy, **arguments})
    for each in settings.strategies:
        yield from each.groups(table_files(files, spark), settings.selection[each.name])


def table_files(files, spark=None):
    """What strategies choose from when a run begins."""
    properties = {**configuration_of(REVISIONS), "use.index.columns": "x,y"}
    snapshot = TableSnapshot(spark, 1, "t", properties, _SCHEMA, (), 168.0, None)
    # Cached properties: this is all that strategies look at.
    snapshot.__dict__["file_table"] = columns_of(files)
    return TableFiles(snapshot)


def chosen(files, strategy=None, **arguments):
    """The names of the files that are chosen."""
    group = choice(files, strategy, **arguments)
    return [] if group is None else [f.path for f in group.files]


def rewritten(files, group):
    """The files after the chosen ones were merged into one, whose name is that of the first with a dash."""
    paths = {f.path for f in group.files}
    taken = [f for f in files if f.path in paths]
    rows = {}
    for each in taken:
        for cube_id, _, _, count in each.blocks:
            rows[cube_id] = rows.get(cube_id, 0) + count
    return [f for f in files if f.path not in paths] + [file(taken[0].path + "-", rows, sum(f.size for f in taken))]
