"""Errors of the JVM as one line, without a JVM."""

import pytest
from pyspark.errors import AnalysisException

from catalog.errors import (
    FileSystemError,
    IndexUnreadableError,
    InvalidArgumentError,
    SparkFailedError,
    TableError,
    UseError,
)
from catalog.jvm.java_errors import (
    Cause,
    as_one_line,
    failure,
    file_system_trouble,
    is_cancellation,
    known_error,
    one_line,
    table_failure,
)
from otree.errors import IndexFormatError

_S3A = "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("plain", "plain"),
        (
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'b'. SQLSTATE: 42601; line 1 pos 2",
            "Syntax error at or near 'b'.",
        ),
        (
            "[CAST_INVALID_INPUT] It is malformed. SQLSTATE: 22018\n== SQL (line 1, position 1) ==\ncast('x')\n^^^",
            "It is malformed.",
        ),
        (
            "Call From a/1.2.3.4 to b:1 failed: java.net.ConnectException: Connection refused",
            "Call From a/1.2.3.4 to b:1 failed: Connection refused",
        ),
        ("java.lang.RuntimeException: java.io.IOException: no", "no"),
        ("java.lang.UnsupportedOperationException", ""),
        ("two\nlines\r\nand three", "two lines and three"),
        ("the plan does not fit;\n'Project [1]\n+- OneRowRelation", "the plan does not fit"),
        ("it broke\n\tat org.apache.spark.X.y(X.scala:1)", "it broke"),
    ],
)
def test_one_line(text, line):
    assert one_line(text) == line


def test_long_texts_are_cut():
    assert len(one_line("x" * 10_000)) < 500


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ([Cause("RuntimeException", f"java.lang.X: {_S3A}"), Cause("ClassNotFoundException", _S3A)],
         "spark.jars.packages"),
        ([Cause("UnsupportedFileSystemException", 'No FileSystem for scheme "s3"')], 'scheme "s3"'),
        ([Cause("UnsupportedFileSystemException", 'No FileSystem for scheme "null"')], "one slash"),
        ([Cause("IllegalArgumentException", "java.net.UnknownHostException: no"), Cause("UnknownHostException", "no")],
         "no host no"),
        ([Cause("ConnectException", "Call From a to b failed"), Cause("ConnectException", "Connection refused")],
         "does not answer (Connection refused)"),
        ([Cause("SocketTimeoutException", "10000 millis timeout. ch : java.nio.channels.SocketChannel[connected]")],
         "does not answer (10000 millis timeout)"),
        ([Cause("AccessControlException", "Permission denied: user=a")], "denies access (Permission denied: user=a)"),
        ([Cause("IllegalArgumentException", "Wrong FS: file://host/t, expected: file:///")], "leave the host out"),
        ([Cause("IOException", "Incomplete HDFS URI, no host: hdfs:/t")], "hdfs://host:port/path"),
    ],
)  # fmt: skip
def test_trouble_with_file_systems(causes, said):
    trouble = file_system_trouble(causes)
    assert said in trouble
    error = table_failure("x://t", causes)
    assert (type(error), error.code, error.sql_state) == (FileSystemError, "USE_FILE_SYSTEM", "58030")
    assert error.message.startswith("table = 'x://t' cannot be read: ")
    assert failure(causes).code == "USE_FILE_SYSTEM"


def test_a_file_system_without_folders():
    error = table_failure("http://h/t", [Cause("UnsupportedOperationException", "")])
    assert (error.code, "no folders" in error.message) == ("USE_FILE_SYSTEM", True)


def test_a_metastore_that_does_not_answer_is_no_file_system():
    causes = [Cause("HiveException", "no connection"), Cause("ConnectException", "Connection refused")]
    assert file_system_trouble(causes) is None
    error = table_failure("db.t", causes)
    assert (error.code, "no connection (Connection refused)" in error.message) == ("USE_SPARK_FAILED", True)


def test_a_damaged_log_is_the_tables_trouble():
    causes = [Cause("SparkException", "[FAILED_READ_FILE] Error while reading file f.json.", "FAILED_READ_FILE"),
              Cause("JsonParseException", "Unrecognized token 'x'")]  # fmt: skip
    error = table_failure("db.t", causes)
    assert (type(error), error.code, error.sql_state) == (TableError, "USE_TABLE_UNREADABLE", "XX001")
    assert "Error while reading file f.json (Unrecognized token 'x')." in error.message


def test_a_condition_of_sparks_is_the_code():
    error = failure([Cause("X", "[DIVIDE_BY_ZERO] Division by zero.", "DIVIDE_BY_ZERO", "22012")])
    assert str(error) == "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"


@pytest.mark.parametrize("causes", [[], [Cause("NullPointerException", "")], [Cause("X", "it broke.")]])
def test_what_has_no_condition(causes):
    error = failure(causes)
    assert (type(error), error.code) == (SparkFailedError, "USE_SPARK_FAILED")
    assert error.message.endswith(". The log of the driver may have more details.")
    assert "java." not in error.message


def test_known_errors():
    own = InvalidArgumentError.of("n", 1, "2")
    assert known_error(own) is own
    assert known_error(ValueError("odd\nindeed")).message == "ValueError: odd"
    spark = known_error(AnalysisException("it broke", errorClass=None))
    assert "it broke" in spark.message


def test_cancelled_work_is_no_failure():
    assert is_cancellation([Cause("SparkException", ""), Cause("InterruptedException", "")])
    assert is_cancellation([Cause("SparkException", "", "SPARK_JOB_CANCELLED")])
    assert not is_cancellation([Cause("SparkException", "")])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x00", "\t\x1b"])
def test_errors_are_one_line_whatever_was_given(end):
    error = TableError.missing(f"a{end}b", f"x{end}y")
    assert "'a b'" in error.message
    assert "(x y)" in str(error)
    assert UseError(f"a{end}").message == "a"


def test_an_error_of_the_index_format_is_translated():
    error = IndexFormatError.of_property("qbeast.revision.1", "it is no JSON")
    with pytest.raises(IndexUnreadableError) as raised, as_one_line(None):
        raise error
    assert raised.value.message == str(error)
    assert raised.value.__cause__ is error
