"""One place, one spelling, without Spark."""

from urllib.parse import unquote

import pytest

from catalog.locations import local_path, path_of_file_url, place_of


def _no_default():
    raise AssertionError("the location says everything itself")


@pytest.mark.parametrize(
    "spelling",
    [
        "file:/no/such/t",
        "file:///no/such/t",
        "FILE:/no/such/t",
        "file:/no/such/t/",
        "file:/no//such/t",
        "file://///no/such/t",
        "file:/no/./such/t",
        "file:/no/such/u/../t",
    ],
)
def test_local_spellings(spelling):
    assert place_of(spelling, _no_default) == "file:/no/such/t"


@pytest.mark.parametrize(
    ("spelling", "default", "place"),
    [
        ("/no/t", "file:///", "file:/no/t"),
        ("/t/", "hdfs://NN:8020", "hdfs://nn/t"),
        ("hdfs:/t", "hdfs://nn:8020/", "hdfs://nn/t"),
        ("hdfs:///t", "hdfs://nn:9000", "hdfs://nn:9000/t"),
        ("hdfs:///t", "file:///", "hdfs:/t"),
        ("file:/no/t", "hdfs://nn", "file:/no/t"),
    ],
)
def test_what_the_location_leaves_out_is_that_of_the_default_file_system(spelling, default, place):
    assert place_of(spelling, lambda: default) == place


@pytest.mark.parametrize(
    ("spelling", "place"),
    [
        ("hdfs://NameNode:8020/t//u/", "hdfs://namenode/t/u"),
        ("hdfs://namenode:9000/t", "hdfs://namenode:9000/t"),
        ("s3a://Bucket/t/", "s3a://Bucket/t"),
        ("S3A://Bucket/t", "s3a://Bucket/t"),
        ("abfss://c@a.dfs.core.windows.net/t/./u", "abfss://c@a.dfs.core.windows.net/t/u"),
        ("file:/no/a b%20ü", "file:/no/a b%20ü"),
        ("file:/no/\x00t", "file:/no/\x00t"),
        ("file:/", "file:/"),
        ("s3a://bucket", "s3a://bucket/"),
    ],
)
def test_remote_and_odd_places(spelling, place):
    assert place_of(spelling, _no_default) == place


def test_links_are_followed(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    (tmp_path / "above").symlink_to(tmp_path)
    place = place_of(f"file:{tmp_path}/t", _no_default)
    for spelling in ("link", "link/", "above/t", "above/link/../t"):
        assert place_of(f"file:{tmp_path}/{spelling}", _no_default) == place


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:/a%20b/%23", "/a b/#"),
        ("file:/a#b/c?d", "/a#b/c?d"),
        ("file://host/a", None),
        ("s3a://bucket/a", None),
        ("/a/b", None),
        ("file", None),
    ],
)
def test_paths_in_urls_of_local_files(location, path):
    assert path_of_file_url(location) == path
    encoded = local_path(location)
    assert (encoded if encoded is None else unquote(encoded)) == path


def test_spark_does_not_decode_locations():
    assert local_path("file:///a%20b/c#d") == "/a%20b/c#d"
