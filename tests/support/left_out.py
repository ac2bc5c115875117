"""The quick tests that a line of Spark cannot have, each with the reason."""

from dataclasses import dataclass

from catalog.jvm.spark_lines import minor_of


@dataclass(frozen=True)
class LeftOut:
    """A test that needs newer versions than the oldest that USE supports.

    Attributes:
        test: node id, without parameters.
        reason: what older versions lack.
        spark: the first line of Spark that has it.
        delta: the first minor release of Delta that has it.
    """

    test: str
    reason: str
    spark: str = "0.0"
    delta: str = "0.0"


LIST = (
    LeftOut(
        "tests/sql_ext/test_calls.py::test_show_procedures",
        "Spark 4.0 has no SHOW PROCEDURES and no DESCRIBE PROCEDURE.",
        spark="4.1",
    ),
    LeftOut(
        "tests/sql_ext/test_parser.py::test_parameters_in_place_of_literals_of_the_syntax",
        "Spark 4.0 takes parameters only in place of expressions.",
        spark="4.1",
    ),
    LeftOut(
        "tests/procedures/calls/test_delta_features.py::test_constraints_generated_and_identity_columns",
        "CREATE TABLE with generated and identity columns is new in the SQL of Delta 4.4.",
        delta="4.4",
    ),
)


def left_out(spark: str, delta: str) -> list[LeftOut]:
    """Returns the tests that two versions cannot have.

    Args:
        spark: version of Spark.
        delta: version of Delta.
    """
    return [each for each in LIST if _numbers(spark) < _numbers(each.spark) or _numbers(delta) < _numbers(each.delta)]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in minor_of(version).split(".")]
