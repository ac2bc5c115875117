"""A Parquet table or folder that is to become a Delta table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.counted_nouns import counted
from catalog.errors import NotSupportedError, TableError
from catalog.jvm.files import is_plain_folder, partition_schema
from catalog.jvm.java_errors import looking_at
from catalog.jvm.session import strict_session

_BY_PATH = re.compile(r"parquet\.`(?P<quoted>(?:[^`]|``)+)`|(?P<bare>(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?/.*)", re.IGNORECASE)

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_CONVERSION = "spark.databricks.delta.convert"


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files under a name or a path.

    Attributes:
        name: as ``CONVERT TO DELTA`` takes it.
        delta_name: name of the table once it is converted.
        schema: all columns, partition columns included.
        partition_columns: their names.
        partitioned_by: clause for ``CONVERT TO DELTA``; '' where the catalog knows the partitions.
        has_null_partitions: whether the catalog has a partition without a value, which Delta would take for a text.
    """

    spark: SparkSession
    name: str
    delta_name: str
    schema: StructType
    partition_columns: tuple[str, ...]
    partitioned_by: str
    has_null_partitions: bool = False

    @classmethod
    def find(cls, spark: SparkSession, name: str) -> ParquetSource | None:
        """Finds Parquet data; None for anything that is not Parquet, a Delta table included.

        Raises:
            TableError: the Parquet files cannot be read.
            NotSupportedError: a conversion would find other files than Spark reads.
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
        has_null = len(names) > start and any(
            f"={_NULL_PARTITION}" in row.partition for row in spark.sql(f"SHOW PARTITIONS {name}").collect()
        )
        if has_null:
            _check_files(spark, name, details["Location"], spark.table(name))
        return cls(spark, name, name, schema, tuple(names[start:]), "", has_null)

    @classmethod
    def _at(cls, spark: SparkSession, path: str) -> ParquetSource | None:
        with looking_at(path):
            if not is_plain_folder(spark, path):
                return None
        try:
            data = spark.read.parquet(path)
        except (PySparkException, Py4JJavaError) as error:
            raise TableError.not_delta(path, "and no Parquet files that can be read") from error
        _check_files(spark, path, path, data)
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
        session = strict_session(self.spark)
        session.conf.set(f"{_CONVERSION}.partitionValues.ignoreCastFailure", "false")
        if self.has_null_partitions:
            session.conf.set(f"{_CONVERSION}.useCatalogPartitions", "false")
        session.sql(f"CONVERT TO DELTA {self.name}{self.partitioned_by}")


def _check_files(spark: SparkSession, name: str, location: str, data: DataFrame) -> None:
    """Compares the files that a conversion finds in all folders below a location with those that Spark reads.

    Raises:
        NotSupportedError: they differ.
    """
    below = spark.read.option("recursiveFileLookup", "true").parquet(location).inputFiles()
    different = sorted(set(below).symmetric_difference(data.inputFiles()))
    if different:
        raise NotSupportedError(
            f"table = '{name}' cannot be converted: the files below {location} are not those that Spark reads, shown "
            f"by {counted(len(different), 'file')}, such as {different[0]}. Move them to another folder."
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
