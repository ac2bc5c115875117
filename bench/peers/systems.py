"""The systems that are compared: how each makes, changes and rewrites a table, with its best documented settings.

A system runs in a process and an environment of its own, with its own jars only. All of them write Parquet with Snappy
and aim at the same size of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from peers.workload import Step, Table

# What runs where. The published index has no jar that can be resolved; the page says so.
DELTA_ENVIRONMENT, ICEBERG_ENVIRONMENT, HUDI_ENVIRONMENT = "spark-4.1", "spark-4.1-bare", "spark-3.5-bare"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
HUDI = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1"
# Rows of a page, as USE writes them. Some layouts read fewer bytes with such pages, others more.
_PAGE_ROWS = "2000"
_SMALL_PAGES = {"spark.hadoop.parquet.page.row.count.limit": _PAGE_ROWS}


@dataclass(frozen=True)
class System:
    """A way to store tables.

    Attributes:
        name: what the page calls it.
        environment: where it runs.
        settings: of the Spark session.
        attach: is called with the builder of the session and the coordinates of further jars, and returns the session.
        create: makes a table from a Parquet file.
        lay_out: rewrites a table as a whole, once after it was loaded.
        maintain: rewrites what has changed since then, at most about so many bytes where the system can be told.
        relayout: the statement that changes the columns of layout, where ``maintain`` is not just given others.
        move: rewrites all files of former columns; if None, ``lay_out`` rewrites the whole table.
        namespace: where tables are, as the argument of ``USE``.
    """

    name: str
    environment: str
    settings: Mapping[str, str]
    create: Callable[[SparkSession, Table, str, int], None]
    lay_out: Callable[[SparkSession, Table, int], None]
    maintain: Callable[[SparkSession, Table, int, int], None]
    relayout: str = ""
    move: Callable[[SparkSession, Table, int], None] | None = None
    namespace: str = "bench"
    attach: Callable[[SparkSession.Builder, Sequence[str]], SparkSession] = field(
        default=lambda builder, _: builder.getOrCreate()
    )

    @property
    def table_format(self) -> str:
        """``delta``, ``iceberg`` or ``hudi``."""
        return {ICEBERG_ENVIRONMENT: "iceberg", HUDI_ENVIRONMENT: "hudi"}.get(self.environment, "delta")

    def change(self, spark: SparkSession, step: Step, table: Table, folder: Path) -> None:
        """Runs a statement of the history."""
        if step.kind == "delete":
            spark.sql(f"DELETE FROM {table.name} WHERE {step.condition}")
            return
        spark.read.parquet(str(folder / step.rows)).createOrReplaceTempView("step_rows")
        if step.kind == "append":
            spark.sql(f"INSERT INTO {table.name} SELECT * FROM step_rows")
        else:
            same = " AND ".join(f"t.{column} = s.{column}" for column in table.key)
            spark.sql(
                f"MERGE INTO {table.name} t USING step_rows s ON {same} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )


def _nothing(*_: object) -> None:
    pass


# -------------------------------------------------------------------------------------------------------------- Delta

_DELTA = {
    # Its default of 50 is for large logs, and each query would have 50 tasks for each of its tables.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def _delta_session(builder: SparkSession.Builder, packages: Sequence[str]) -> SparkSession:
    from delta import configure_spark_with_delta_pip

    return configure_spark_with_delta_pip(builder, extra_packages=list(packages)).getOrCreate()


def _create_delta(clause: str = "", properties: str = "") -> Callable[[SparkSession, Table, str, int], None]:
    def create(spark: SparkSession, table: Table, rows: str, file_bytes: int) -> None:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))
        spark.conf.set("spark.databricks.delta.autoCompact.maxFileSize", str(file_bytes))
        # Its default of 50 is more than the appends of a history.
        spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
        columns = ", ".join(table.layout)
        made = clause.format(columns=columns) if table.layout else ""
        wanted = f"TBLPROPERTIES ({properties.format(columns=columns, file_bytes=file_bytes)})" if properties else ""
        with_properties = wanted if table.layout else ""
        spark.sql(f"CREATE TABLE {table.name} USING delta {made} {with_properties} AS SELECT * FROM {rows}")

    return create


def _optimize(clause: str = "", full: str = "") -> dict[str, Callable[..., None]]:
    def run(spark: SparkSession, table: Table, modifier: str) -> None:
        spark.sql(f"OPTIMIZE {table.name} {modifier} {clause.format(columns=', '.join(table.layout))}")

    return {
        "lay_out": lambda spark, table, _: run(spark, table, full),
        "maintain": lambda spark, table, *_: run(spark, table, ""),
    }


def _use_session(builder: SparkSession.Builder, _: Sequence[str]) -> SparkSession:
    import sql_ext
    from sql_ext.startup_output import held_back

    with held_back():
        spark = sql_ext.configure(builder).getOrCreate()
    sql_ext.attach(spark)
    return spark


def _use_optimize(spark: SparkSession, table: Table, _: int, allowance: int | None = None, **options: bool) -> None:
    import sql_ext

    limit = {} if allowance is None else {"max_bytes": allowance}
    sql_ext.call(spark, "optimize", table=f"bench.{table.name}", **limit, **options).collect()


# ------------------------------------------------------------------------------------------------------------ Iceberg

_ICEBERG = {
    "spark.jars.packages": ICEBERG,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
    "spark.sql.defaultCatalog": "spark_catalog",
}


def _create_iceberg(ordered: bool, properties: str) -> Callable[[SparkSession, Table, str, int], None]:
    def create(spark: SparkSession, table: Table, rows: str, file_bytes: int) -> None:
        written = f"'write.target-file-size-bytes' = '{file_bytes}', 'write.parquet.compression-codec' = 'snappy'"
        spark.sql(
            f"CREATE TABLE {table.name} USING iceberg "
            f"TBLPROPERTIES ('format-version' = '2', {written}{properties}) AS SELECT * FROM {rows}"
        )
        if ordered and table.layout:
            spark.sql(f"ALTER TABLE {table.name} WRITE ORDERED BY {', '.join(table.layout)}")

    return create


def _rewrite_data_files(order: str) -> dict[str, Callable[..., None]]:
    def run(spark: SparkSession, table: Table, file_bytes: int, **options: str) -> None:
        listed = {"target-file-size-bytes": str(file_bytes), **{key.replace("_", "-"): options[key] for key in options}}
        pairs = ", ".join(f"'{key}', '{value}'" for key, value in listed.items())
        curve = order in ("zorder", "hilbert") and len(table.layout) > 1
        columns = ", ".join(table.layout)
        by = f"{order}({columns})" if curve else ", ".join(f"{column} ASC NULLS FIRST" for column in table.layout)
        strategy = f"strategy => 'sort', sort_order => '{by}'" if order else "strategy => 'binpack'"
        spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'bench.{table.name}', {strategy}, options => map({pairs}))"
        ).collect()

    return {
        "lay_out": lambda spark, table, file_bytes: run(spark, table, file_bytes, rewrite_all="true"),
        "maintain": lambda spark, table, file_bytes, _: run(spark, table, file_bytes, min_input_files="2"),
    }


# --------------------------------------------------------------------------------------------------------------- Hudi

_HUDI = {
    "spark.jars.packages": HUDI,
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.hadoop.hoodie.metadata.enable": "true",
    "spark.hoodie.metadata.enable": "true",
    "spark.hoodie.enable.data.skipping": "true",
}


def _create_hudi(spark: SparkSession, table: Table, rows: str, file_bytes: int) -> None:
    properties = {
        "type": "cow",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.parquet.max.file.size": str(file_bytes),
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.parquet.compression.codec": "snappy",
    }
    if table.key:
        properties["primaryKey"] = ",".join(table.key)
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    spark.sql("SET hoodie.enable.data.skipping = true")
    spark.sql("SET hoodie.metadata.index.column.stats.enable = true")
    spark.sql(f"CREATE TABLE {table.name} USING hudi TBLPROPERTIES ({pairs}) AS SELECT * FROM {rows}")


def _run_clustering(order: str) -> dict[str, Callable[..., None]]:
    def run(spark: SparkSession, table: Table, file_bytes: int, small: int, groups: int) -> None:
        options = {
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(file_bytes),
            "hoodie.clustering.plan.strategy.small.file.limit": str(small),
            "hoodie.clustering.plan.strategy.max.num.groups": str(groups),
            "hoodie.parquet.compression.codec": "snappy",
            "hoodie.metadata.index.column.stats.enable": "true",
        }
        listed = ",".join(f"{key}={value}" for key, value in options.items())
        strategy = order if len(table.layout) > 1 else "linear"
        spark.sql(
            f"CALL run_clustering(table => '{table.name}', op => 'scheduleandexecute', "
            f"order => '{','.join(table.layout)}', order_strategy => '{strategy}', options => '{listed}')"
        ).collect()

    return {
        "lay_out": lambda spark, table, file_bytes: run(spark, table, file_bytes, 1 << 40, 1000),
        "maintain": lambda spark, table, file_bytes, _: run(spark, table, file_bytes, file_bytes * 3 // 4, 1000),
    }


# ------------------------------------------------------------------------------------------------------------- all

_AUTO = "'delta.autoOptimize.autoCompact' = 'true'"
_ICEBERG_PAGES = f", 'write.parquet.page-row-limit' = '{_PAGE_ROWS}'"
_INDEX = "'use.index.columns' = '{columns}', 'use.index.targetFileBytes' = '{file_bytes}'"


def _delta(
    name: str,
    create: Callable[..., None],
    relayout: str = "",
    settings: Mapping[str, str] | None = None,
    **rewrites: Callable[..., None],
) -> System:
    given = {"lay_out": _nothing, "maintain": _nothing, **rewrites}
    session = {**_DELTA, **(settings or {})}
    return System(name, DELTA_ENVIRONMENT, session, create, **given, relayout=relayout, attach=_delta_session)


def _zorder(name: str, settings: Mapping[str, str] | None = None) -> System:
    return _delta(name, _create_delta(), settings=settings, **_optimize("ZORDER BY ({columns})"))


def _liquid(name: str, settings: Mapping[str, str] | None = None) -> System:
    create = _create_delta("CLUSTER BY ({columns})")
    relayout = "ALTER TABLE {table} CLUSTER BY ({columns})"
    return _delta(name, create, relayout, settings, **_optimize(full="FULL"))


def _iceberg(name: str, order: str, properties: str = "") -> System:
    return System(
        name,
        ICEBERG_ENVIRONMENT,
        _ICEBERG,
        _create_iceberg(order == "sort", properties),
        **_rewrite_data_files(order),
        relayout="ALTER TABLE {table} WRITE ORDERED BY {columns}" if order == "sort" else "",
        namespace="ice.bench",
    )


def _hudi(name: str, order: str) -> System:
    return System(name, HUDI_ENVIRONMENT, _HUDI, _create_hudi, **_run_clustering(order))


SYSTEMS = {
    "use": System(
        "USE",
        DELTA_ENVIRONMENT,
        {},
        _create_delta(properties=_INDEX),
        _use_optimize,
        _use_optimize,
        relayout="ALTER TABLE {table} SET TBLPROPERTIES ('use.index.columns' = '{columns}')",
        move=partial(_use_optimize, revision_rewrite=True),
        attach=_use_session,
    ),
    "delta": _delta("plain Delta", _create_delta()),
    "delta-optimize": _delta("Delta `OPTIMIZE`", _create_delta(), **_optimize()),
    "delta-zorder": _zorder("Delta `ZORDER`"),
    "delta-zorder-pages": _zorder("Delta `ZORDER`, small pages", _SMALL_PAGES),
    "delta-liquid": _liquid("Delta liquid clustering"),
    "delta-liquid-pages": _liquid("Delta liquid clustering, small pages", _SMALL_PAGES),
    "delta-auto": _delta("Delta auto compaction", _create_delta(properties=_AUTO)),
    "iceberg-binpack": _iceberg("Iceberg bin-pack", ""),
    "iceberg-sort": _iceberg("Iceberg sort", "sort"),
    "iceberg-sort-pages": _iceberg("Iceberg sort, small pages", "sort", _ICEBERG_PAGES),
    "iceberg-zorder": _iceberg("Iceberg Z-order", "zorder"),
    "iceberg-zorder-pages": _iceberg("Iceberg Z-order, small pages", "zorder", _ICEBERG_PAGES),
    "iceberg-hilbert": _iceberg("Iceberg Hilbert", "hilbert"),
    "hudi-linear": _hudi("Hudi sort", "linear"),
    "hudi-zorder": _hudi("Hudi Z-order", "z-order"),
    "hudi-hilbert": _hudi("Hudi Hilbert", "hilbert"),
}
"""By the name that arguments use."""
