"""A JDBC server that does not start; no Spark."""

import tempfile
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError

from catalog.errors import UseError
from sql_ext.server.jdbc import JdbcServer
from sql_ext.server.settings import NONE, ServerSettings


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Py4JJavaError("no", SimpleNamespace(_target_id="o1", _gateway_client=None, toString=lambda: "no")), UseError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_server_that_does_not_start_leaves_no_folder_behind(tmp_path, monkeypatch, error, raised):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spark = MagicMock()
    spark._jvm.org.apache.spark.sql.hive.thriftserver.usespark.JdbcServer.serve.side_effect = error
    with pytest.raises(raised):
        JdbcServer(spark, ServerSettings(port=0, auth=NONE), "")
    assert list(tmp_path.iterdir()) == []
