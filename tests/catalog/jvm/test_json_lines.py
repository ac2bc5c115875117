"""Files of JSON lines become rows, and leave nothing behind in the driver."""

import json

from catalog.jvm.json_lines import json_lines


def _kept_listings(spark):
    """Spark's cache of listings, which it makes when it first keeps one."""
    found = spark.sparkContext._jvm.java.lang.Class.forName(
        "org.apache.spark.sql.execution.datasources.FileStatusCache$"
    )
    cache = found.getDeclaredField("sharedCache")
    cache.setAccessible(True)
    return cache.get(found.getDeclaredField("MODULE$").get(None))


def test_files_are_read_and_their_listings_are_not_kept(spark, tmp_path):
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for number, file in enumerate(files):
        file.write_text(json.dumps({"id": number, "other": 1}) + "\nnothing\n", encoding="utf-8")
    spark.sparkContext._jvm.org.apache.spark.sql.execution.datasources.FileStatusCache.resetForTesting()
    read = json_lines(spark, [f"file:{file}" for file in files], "id bigint, name string")
    files[1].unlink()
    assert sorted(row.id for row in read.collect() if row.id is not None) == [0, 2]
    assert _kept_listings(spark) is None
    read.createOrReplaceTempView("json_lines_of_session")
    assert spark.sql("SELECT count(id) FROM json_lines_of_session").first()[0] == 2
    spark.read.json(str(tmp_path)).count()
    assert _kept_listings(spark) is not None
