"""Statistics of files for Delta's log: from the footers of Parquet, or from the rows."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.jvm.java_values import JavaValue, data_frame, java_data


class FileStatistics:
    """The shim's ``FileStatistics``, of one version of a table. Both ways count the rows that a file stores.

    Args:
        spark: session of the work.
        java: the shim's object.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java

    def schema(self) -> StructType:
        """Returns the schema of the column ``stats``, whose values are JSON; its columns have their physical names."""
        return StructType.fromJson(json.loads(self._java.schema()))

    def from_footers(self, files: DataFrame) -> DataFrame:
        """Returns the files with the statistics of their footers, which lack what Delta cannot take from a footer.

        Files of which Delta would take wrong ones have the number of their rows only: those with unsigned numbers, with
        dates outside of the years 1 to 9999, with a column whose bounds one row group lacks, such as long texts, and
        with arrays or maps that are empty or have nulls. Columns that shall have no statistics do not matter.

        Args:
            files: AddFile rows.
        """
        return data_frame(self._java.fromFooters(java_data(files)), self.spark)

    def from_rows(self, files: DataFrame) -> DataFrame:
        """Reads the files and returns them with the statistics of their rows; the driver holds the list of the files.

        Args:
            files: AddFile rows.
        """
        return data_frame(self._java.fromRows(java_data(files)), self.spark)
