"""A Parquet table or folder that is to become a Delta table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from catalog.errors import TableError
from catalog.jvm.files import is_plain_folder, partition_schema
from catalog.jvm.java_errors import looking_at

_BY_PATH = re.compile(r"parquet\.`(?P<quoted>(?:[^`]|``)+)`|(?P<bare>(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?/.*)", re.IGNORECASE)


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files under a name or a path.

    Attributes:
        name: as ``CONVERT TO DELTA`` takes it.
        delta_name: name of the table once it is converted.
        schema: all columns, partition columns included.
        partition_columns: their names.
        partitioned_by: clause for ``CONVERT TO DELTA``; '' where the catalog knows the partitions.
    """

    spark: SparkSession
    name: str
    delta_name: str
    schema: StructType
    partition_columns: tuple[str, ...]
    partitioned_by: str

    @classmethod
    def find(cls, spark: SparkSession, name: str) -> ParquetSource | None:
        """Finds Parquet data; None for anything that is not Parquet, a Delta table included.

        Raises:
            TableError: the Parquet files cannot be read.
        """
        by_path = _BY_PATH.fullmatch(name.strip())
        if by_path is not None:
            path = by_path["bare"] or by_path["quoted"].replace("``", "`")
            return cls._at(spark, path)
        try:
            # First, because it accepts nothing but a name.
            schema = spark.table(name).schema
            details = {r.col_name: r.data_type for r in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
        except AnalysisException:
            # Not there, or not readable: the lookup of Delta tables says which, in our words.
            return None
        if details.get("Provider", "").lower() != "parquet":
            return None
        rows = spark.sql(f"DESCRIBE TABLE {name}").collect()
        names = [r.col_name for r in rows]
        start = names.index("# col_name") + 1 if "# col_name" in names else len(names)
        return cls(spark, name, name, schema, tuple(names[start:]), "")

    @classmethod
    def _at(cls, spark: SparkSession, path: str) -> ParquetSource | None:
        with looking_at(path):
            if not is_plain_folder(spark, path):
                return None
        try:
            data = spark.read.parquet(path)
        except (PySparkException, Py4JJavaError) as error:
            raise TableError.not_delta(path, "and no Parquet files that can be read") from error
        partitions = partition_schema(data)
        clause = ", ".join(f"{_quoted(f.name)} {f.dataType.simpleString()}" for f in partitions.fields)
        return cls(
            spark,
            f"parquet.{_quoted(path)}",
            path,
            data.schema,
            tuple(partitions.names),
            f" PARTITIONED BY ({clause})" if clause else "",
        )

    @property
    def is_path(self) -> bool:
        """Whether the files are named by their path, and not by a table of a catalog."""
        return self.name != self.delta_name

    def convert(self) -> None:
        """Writes a Delta log beside the files, with statistics; the files stay as they are."""
        self.spark.sql(f"CONVERT TO DELTA {self.name}{self.partitioned_by}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
