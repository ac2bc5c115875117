"""The rows of a rewrite are as many as the log tells of its inputs, less those that are removed."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import AnalysisException
from tables import checksum

from catalog.errors import RowsChangedError
from catalog.history.events import FileFacts
from procedures.groups.group import Concatenate, FileRun, InputFile, KeyOrder, Relayout, RowRemoval
from procedures.rewrite.group_rewrite import check_rows


def _input(path, rows):
    return InputFile(path, "", 100, rows, -1, 0, 0)


INPUTS = _input("a", 2), _input("b", 3)
RELAYOUT = Relayout("SizeTieredClustering", 0, "", INPUTS)


class Counts:
    """A transaction whose files have other rows than the log tells."""

    def __init__(self, rows=None, by_time=()):
        self.rows, self.by_time = rows or {}, dict(by_time)

    def count(self, paths):
        return sum(self.rows[path] for path in paths)

    def rows_by_time(self):
        return self.by_time


def _written(*rows):
    return [FileFacts(f"new-{number}", 100, count, (), (), -1) for number, count in enumerate(rows)]


@pytest.mark.parametrize("rows", [[], [4], [3, 3], [6]])
def test_other_rows_than_the_log_tells_are_not_committed(rows):
    with pytest.raises(RowsChangedError, match=f"5 rows were to be written and {sum(rows)} were"):
        check_rows(RELAYOUT, _written(*rows), Counts())


def test_removed_rows_are_not_written():
    removal = RowRemoval(None, 2, KeyOrder(("id",), "ts"), ())
    group = Concatenate("DeleteCompaction", 0, "", INPUTS, runs=(FileRun(("a", "b")),), removal=removal)
    check_rows(group, _written(3), Counts())
    with pytest.raises(RowsChangedError, match="3 rows were to be written and 5 were"):
        check_rows(group, _written(5), Counts())


@pytest.mark.parametrize("rows", [[2, 3], [1, None]])
def test_equal_and_unknown_numbers_pass(rows):
    check_rows(RELAYOUT, _written(*rows), Counts())


def test_inputs_of_unknown_rows_are_counted():
    group = Relayout("SizeTieredClustering", 0, "", (_input("c", None),))
    check_rows(group, _written(4), Counts({"c": 4}))
    with pytest.raises(RowsChangedError, match="4 rows were to be written and 3 were"):
        check_rows(group, _written(3), Counts({"c": 4}))


def test_files_that_are_not_read_have_no_rows():
    files = *INPUTS, _input("empty", 0)
    group = Concatenate("StepConsolidation", 0, "", files, runs=(FileRun(("a", "b")),))
    check_rows(group, _written(5), Counts({"empty": 0}))
    with pytest.raises(RowsChangedError, match=r"7 rows of files that have none according to the log, such as empty"):
        check_rows(group, _written(5), Counts({"empty": 7}))


def test_rows_stay_in_the_partition_of_their_time():
    check_rows(RELAYOUT, _written(5), Counts(by_time={"10": (2, 2), "20": (-1, 3), "30": (1, 0)}))
    with pytest.raises(RowsChangedError, match="partition of another time"):
        check_rows(RELAYOUT, _written(5), Counts(by_time={"10": (2, 4), "20": (2, 0)}))


@pytest.mark.slow
def test_a_file_whose_number_of_rows_is_recorded_wrongly_keeps_its_rows(spark, tmp_path):
    for number in range(4):
        write_deltalake(f"{tmp_path}/t", pa.table({"id": [10 * number, 10 * number + 1]}), mode="append")
    entry = Path(f"{tmp_path}/t/_delta_log/{2:020}.json")
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps({"numRecords": 0})
    entry.write_text("\n".join(map(json.dumps, lines)))
    before = checksum(spark.read.format("delta").load(f"{tmp_path}/t"))
    with pytest.raises(AnalysisException, match=r"\[USE_ROWS_CHANGED\] 2 rows of files that have none"):
        spark.sql(f"CALL use.optimize('{tmp_path}/t', strategy => 'StepConsolidation')")
    assert checksum(spark.read.format("delta").load(f"{tmp_path}/t")) == before
