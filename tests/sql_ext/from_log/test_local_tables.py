"""Which names stand for folders of this machine, and what a session would add to the properties of tables."""

import pytest

from catalog.errors import FileSystemError, TableError
from sql_ext.from_log import local_tables
from sql_ext.from_log.local_tables import check_table, local_folder, session_properties


@pytest.fixture
def conf(tmp_path):
    """An environment whose Spark has a folder of settings."""
    return {"SPARK_CONF_DIR": str(tmp_path)}


def _defaults(tmp_path, text):
    (tmp_path / "spark-defaults.conf").write_text(text)


def test_names_of_folders(conf):
    for name in ("/a/b c", "/a/b c/", "file:/a/b c", "file:///a/b c", "delta.`/a/b c`", "DELTA.`FILE:/a/b c`"):
        assert str(local_folder(name, conf)) == "/a/b c", name
    # Spark does not decode it.
    assert str(local_folder("file:///a/b%20c", conf)) == "/a/b%20c"
    for name in ("t", "db.t", "s3a://bucket/t", "hdfs:/t", "delta.t", "parquet.`/a`", "file://host/a"):
        assert local_folder(name, conf) is None, name


def test_a_path_may_be_on_another_file_system(tmp_path, conf):
    assert local_folder("/a", {**conf, "HADOOP_CONF_DIR": "/etc/hadoop"}) is None
    assert local_folder("file:/a", {**conf, "HADOOP_CONF_DIR": "/etc/hadoop"}) is not None
    _defaults(tmp_path, "spark.hadoop.fs.defaultFS hdfs://name/\n")
    assert local_folder("/a", conf) is None


def test_settings_that_stand_for_properties(tmp_path, conf):
    assert session_properties(conf) == {}
    _defaults(tmp_path, "spark.qbeast.use.index.targetFileBytes 1MB\nspark.master local\n")
    assert session_properties(conf) == {"use.index.targetFileBytes": "1MB"}


def test_the_settings_of_the_installed_spark(tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    _defaults(tmp_path / "conf", "spark.qbeast.use.x 1")
    assert session_properties({"SPARK_HOME": str(tmp_path)}) == {"use.x": "1"}
    monkeypatch.setattr(local_tables, "_package", lambda: None)
    assert session_properties({}) == {}


def test_folders_that_are_no_tables(tmp_path):
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "p=1").mkdir()
    check_table("t", tmp_path / "t")
    for folder, code in {
        "none": "USE_TABLE_NOT_FOUND",
        "": "USE_NOT_A_DELTA_TABLE",
        "t/p=1": "USE_NOT_A_TABLE",
        "t@v12": "USE_TIME_TRAVEL",
        "none@v12": "USE_TABLE_NOT_FOUND",
    }.items():
        with pytest.raises(TableError) as raised:
            check_table("name", tmp_path / folder)
        assert raised.value.code == code, folder


def test_a_path_that_is_too_long_is_an_error_with_a_code(tmp_path):
    with pytest.raises(FileSystemError, match="File name too long") as raised:
        check_table("x" * 5_000, tmp_path / ("x" * 5_000))
    assert len(raised.value.message) < 300
