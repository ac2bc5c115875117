"""What keeps Spark from starting on this machine, found before the JVM starts and said in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from catalog.errors import InvalidArgumentError, NotSupportedError, UnusableJavaError
from sql_ext.commands.doctor_checks import programs, spark_setup
from sql_ext.commands.doctor_checks.finding import FAIL
from sql_ext.installed_versions import require_spark


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuses an environment in which Spark's launcher would fail or print its help.

    Args:
        environment: variables.

    Raises:
        InvalidArgumentError: ``PYSPARK_SUBMIT_ARGS`` starts no shell of Python.
        NotSupportedError: ``SPARK_HOME`` contains no Spark, or another one than pyspark is made for.
        UnusableJavaError: Java is missing or has an unsupported version.
        MissingPackageError: there is no pyspark.
    """
    arguments = spark_setup.submit_arguments(environment)
    if arguments.state == FAIL:
        raise InvalidArgumentError(f"{arguments.message} is not accepted: {arguments.advice}.")
    pyspark = require_spark()
    spark = spark_setup.spark_home(environment, Path(str(pyspark.__file__)).parent, str(pyspark.__version__))
    if spark.state == FAIL:
        raise NotSupportedError(f"Spark cannot start: {spark.message}; {spark.advice}.")
    java = programs.java(environment)
    if java.state == FAIL:
        raise UnusableJavaError.of(java.message, java.advice or "")
