"""What a rewrite of runs says of its files, without Spark."""

from catalog.jvm.file_writer import DataFile
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.rewrite.inputs import InputFacts
from procedures.rewrite.run_rewrite import _runs_of, _tags


def _file(path, rows=10, first=0, last=0):
    return InputFile(path, "", 100, rows, -1, first, last)


FILES = _file("a", first=5, last=6), _file("b", first=1, last=2), _file("c", first=9, last=9)
GROUP = Concatenate("SizeTieredClustering", 0, "", FILES, runs=(FileRun(("b", "a"), 3), FileRun(("c",))))
PARTS = [DataFile("p=1/part-00001-x.c000.snappy.parquet", 1), DataFile("Ab/part-00000-y.c000.snappy.parquet", 2)]


def test_a_file_belongs_to_the_run_of_its_partition():
    assert _runs_of(PARTS, GROUP) == {PARTS[0].path: FileRun(("c",)), PARTS[1].path: FileRun(("b", "a"), 3)}
    strange = [DataFile("data.parquet", 1), DataFile("part-00007-z.parquet", 1)]
    assert _runs_of(strange, GROUP) == {file.path: FileRun(("b", "a", "c"), 3) for file in strange}


def test_tags_span_the_times_of_the_run():
    facts = InputFacts((), {"a": 1.0, "b": 0.0, "c": 4.0}, {"a": 100, "b": 300, "c": 100})
    tags = _tags(PARTS, GROUP, facts, "w")
    assert tags[PARTS[0].path] == {"use.write": "w", "use.timeRange": "9,9", "use.rewrites": "5.000"}
    assert tags[PARTS[1].path] == {"use.write": "w", "use.timeRange": "1,6", "use.rewrites": "1.250", "use.tier": "3"}
