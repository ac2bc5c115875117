"""Which errors a server's log shows as one line, and which with their stack."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException


@pytest.fixture
def errors(spark):
    return spark._jvm.io.usespark.ClientErrorFilter()


def failure(spark, statement):
    """What the JVM throws."""
    try:
        spark.sql(statement).collect()
    except Py4JJavaError as error:
        return error.java_exception
    except CapturedException as error:
        return error._origin
    raise AssertionError(f"{statement} does not fail")


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("SELEC 1", "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'."),
        ("SELECT nope", "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column, variable, or function parameter with name"),
        ("SELECT * FROM nope", "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope` cannot be found."),
        ("CALL use.nope()", "[USE_UNKNOWN_PROCEDURE] There is no procedure 'nope'."),
        ("CALL use.optimize('nope')", "[USE_TABLE_NOT_FOUND] table = 'nope' was not found"),
        ("CALL use.optimize(tabel => 'x')", "[UNRECOGNIZED_PARAMETER_NAME] Cannot invoke routine"),
        ("SELECT 1/0", "[DIVIDE_BY_ZERO]"),
        ("SELECT CAST('a' AS INT)", "[CAST_INVALID_INPUT]"),
        ("SELECT raise_error('a\nb')", "[USER_RAISED_EXCEPTION] a"),
        ("SELECT * FROM parquet.`/nope`", "[PATH_NOT_FOUND]"),
    ],
)
def test_mistakes_in_statements_are_one_line(spark, errors, statement, line):
    error = failure(spark, statement)
    wrapped = spark._jvm.java.lang.RuntimeException("wrapped", error)
    for thrown in (error, wrapped):
        told = errors.line(thrown)
        assert told.startswith(line)
        assert "\n" not in told


def test_refused_logins_are_one_line(spark, errors):
    jvm = spark._jvm
    cause = jvm.javax.security.sasl.AuthenticationException("The token is missing or wrong.")
    refused = jvm.javax.security.sasl.SaslException("Error", cause)
    assert errors.connectionLine(refused) == "The token is missing or wrong."
    ended = jvm.org.apache.thrift.transport.TTransportException("Error validating the login")
    assert errors.connectionLine(jvm.java.lang.RuntimeException(ended)) == "Error validating the login"
    assert errors.connectionLine(jvm.java.lang.NullPointerException()) is None
    # The metastore's client fails like this too.
    assert errors.line(jvm.java.lang.RuntimeException(ended)) is None


def test_internal_errors_keep_their_stacks(spark, errors):
    java = spark._jvm.java
    ours = spark._jvm.io.usespark.UseException
    mistake = failure(spark, "SELECT nope")
    for error in (
        java.lang.NullPointerException(),
        java.lang.RuntimeException("no cause"),
        java.lang.RuntimeException("wrapped", java.lang.IllegalStateException("a bug")),
        java.lang.IllegalStateException("a bug in the handling of", mistake),
        java.lang.OutOfMemoryError("Java heap space"),
        java.io.IOException("No space left on device"),
        spark._jvm.org.apache.spark.SparkException.internalError("a bug"),
        failure(spark, "SELECT java_method('java.lang.Integer', 'parseInt', 'x')"),
        ours("USE_INTERNAL", "XX000", "KeyError: 'x'"),
        ours("USE_ROWS_CHANGED", "XX001", "The rewrite would have changed rows."),
    ):
        assert errors.line(error) is None, error.toString()


def test_what_is_written(spark, errors):
    """The event of a mistake is dropped, and its line is logged in its place."""
    core = spark._jvm.org.apache.logging.log4j.core.impl
    level = spark._jvm.org.apache.logging.log4j.Level.TRACE  # is not shown

    def result(error, logger="a.logger"):
        message = spark._jvm.org.apache.logging.log4j.message.SimpleMessage("Error executing query, ")
        build = core.Log4jLogEvent.newBuilder().setLoggerName(logger).setLevel(level).setMessage(message)
        return errors.filter(build.setThrown(error).build()).toString()

    server = "org.apache.thrift.server.TThreadPoolServer"
    ended = spark._jvm.org.apache.thrift.transport.TTransportException("closed")
    assert result(None) == "NEUTRAL"
    assert result(spark._jvm.java.lang.NullPointerException()) == "NEUTRAL"
    assert result(spark._jvm.java.lang.NullPointerException(), server) == "NEUTRAL"
    assert result(failure(spark, "SELECT nope")) == "DENY"
    assert result(ended, server) == "DENY"
    assert result(ended) == "NEUTRAL"
