"""Which options of a write through qbeast are refused."""

import pytest

from catalog.errors import UseError
from procedures.rewrite.write_options import check_options

OF_DELTA = {"mergeSchema", "overwriteSchema", "replaceWhere", "txnAppId", "txnVersion", "compression", "path"}


def _check(others=(), **given):
    check_options(given, others, OF_DELTA)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cubSize", "Did you mean cubeSize?"),
        ("columns_to_index", "Did you mean columnsToIndex?"),
        ("COLUMNTOINDEX", "Did you mean columnsToIndex?"),
        ("columnStat", "Did you mean columnStats?"),
        ("desiredCubeSize", "Did you mean cubeSize?"),
        ("indexColumns", "columnsToIndex"),
        ("use.index.columns", "columnsToIndex"),
        ("use.index.cubeSize", "cubeSize"),
        ("qbeastPreCommitHook.a", "qbeastPreCommitHook.a"),
        ("mergeSchem", "Did you mean mergeSchema?"),
        ("overwriteSchemas", "Did you mean overwriteSchema?"),
    ],
)
def test_mistyped_options_are_refused(name, near):
    with pytest.raises(UseError, match="USE_UNKNOWN_OPTION") as refused:
        _check([name])
    assert near in refused.value.message


def test_options_of_others_pass(caplog):
    _check(["mergeschema", "TXNAPPID", "path", "maxBytesPerTrigger", "skipChangeCommits", "__partition_columns"])
    _check(["delta.appendOnly", "parquet.block.size", "fs.s3a.access.key", "spark.x", "columnsToIndex.x"])
    assert not caplog.text
    _check(["header", "compressionCodec", "timestampFormat", "user"])
    assert "'header' is known neither to qbeast nor to Delta, and has no effect" in caplog.text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"cubeSize": "abc"}, "cubeSize = 'abc'"),
        ({"columnsToIndex": "a,,b"}, "columnsToIndex = 'a,,b'"),
        ({"columnsToIndex": "`a"}, "not closed"),
        ({"columnsToIndex": "a:lineal"}, "Did you mean linear?"),
    ],
)
def test_malformed_values_are_refused_by_the_option(given, named):
    with pytest.raises(UseError) as refused:
        _check(**given)
    assert named in refused.value.message
