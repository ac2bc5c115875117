"""The numbers of this application in Spark's metrics, as the source ``use``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, jvm_session


@dataclass(frozen=True)
class ApplicationMetrics:
    """The shim's ``UseMetrics``, of which an application has one.

    Attributes:
        spark: a session of the application.
    """

    spark: SparkSession

    def exchange(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Sets some numbers and returns all, including those that the shim counts; starts no Spark job.

        Args:
            numbers: by name, without the name of the source.
        """
        java = java_class(self.spark, "org.apache.spark.sql.usespark.UseMetrics").of(jvm_session(self.spark))
        return {name: int(value) for name, value in json.loads(java.exchange(json.dumps(dict(numbers)))).items()}
