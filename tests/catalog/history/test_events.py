"""File statistics of the event, without Spark."""

import json

import pytest

from catalog.history.events import FileFacts, FilesStats, OptimizationEvent

INDEXED = FileFacts("f1", 100, 30, (10, 20), ("A", "B"), 1)
OTHER = FileFacts("f2", 50, 8, (8,), ("A",), 0)
PLAIN = FileFacts("f3", 10, 5, (), (), -1)


def test_statistics_as_the_reference_defines_them():
    found = FilesStats.of([INDEXED, OTHER])
    assert found.files == ("f1", "f2")
    assert found.file_levels == (1, 0)
    assert (found.element_count, found.bytes, found.num_files) == (38, 150, 2)
    assert (found.num_cubes, found.num_blocks) == (2, 3)
    assert found.avg_num_blocks_per_file == 1.5
    assert found.avg_block_element_count_per_file == pytest.approx((15 + 8) / 2)


def test_unindexed_files_have_rows_and_level_minus_one_and_no_blocks():
    found = FilesStats.of([PLAIN])
    assert (found.element_count, found.file_levels) == (5, (-1,))
    assert (found.num_cubes, found.num_blocks) == (0, 0)
    assert (found.avg_num_blocks_per_file, found.avg_block_element_count_per_file) == (0.0, 0.0)


def test_no_files_and_unknown_rows():
    empty = FilesStats.of([])
    assert (empty.num_files, empty.element_count, empty.avg_num_blocks_per_file) == (0, 0, 0.0)
    assert FilesStats.of([INDEXED, FileFacts("f4", 1, None, (), (), -1)]).element_count == -1


def test_an_event_is_one_json_object_with_the_time_it_took():
    event = OptimizationEvent(
        "UnindexedFiles",
        "w",
        "t",
        1,
        1000,
        1250,
        FilesStats.of([PLAIN]),
        FilesStats.of([INDEXED]),
        "call",
        "R",
        {"a": "b"},
    )
    stored = json.loads(event.to_json())
    assert (stored["process_time_ms"], stored["kind"], stored["parameters"]) == (250, "optimize", {"a": "b"})
    assert stored["input_files_stats"]["files"] == ["f3"]
    assert stored["output_files_stats"]["num_blocks"] == 2
