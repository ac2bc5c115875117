"""The error about a missing or too old Java, in place of Spark's error about its launcher."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkRuntimeError

from catalog.errors import UnusableJavaError
from sql_ext.commands.doctor_checks.finding import FAIL
from sql_ext.commands.doctor_checks.programs import java

_GATEWAY_EXITED = "JAVA_GATEWAY_EXITED"


def java_error(error: BaseException, environment: Mapping[str, str]) -> UnusableJavaError | None:
    """Returns the error about the Java that Spark's launcher starts; None if Java is not the reason.

    Args:
        error: the error of the start.
        environment: variables.
    """
    if not isinstance(error, PySparkRuntimeError) or error.getCondition() != _GATEWAY_EXITED:
        return None
    finding = java(environment)
    return UnusableJavaError.of(finding.message, finding.advice or "") if finding.state == FAIL else None
