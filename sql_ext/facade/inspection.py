"""``table.inspect``: methods that read a table and never change it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from catalog.settings.strategy_options import DEFAULT_FILE_BYTES
from procedures.calls.check import CHECK
from procedures.calls.clustering_information import CLUSTERING_INFORMATION
from procedures.calls.health import HEALTH
from procedures.calls.optimize import OPTIMIZE
from procedures.calls.plan import PLAN, PlanRow
from procedures.calls.quantiles import QUANTILES_PROCEDURE, QuantilesRow
from procedures.calls.recommend import RECOMMEND
from procedures.calls.report import REPORT
from procedures.calls.status import StatusRow
from procedures.insight.checking.problem import CheckRow
from procedures.loop.report import OptimizeRow
from sql_ext.facade.operation_methods import operation_method, rows_of, with_arguments_of
from sql_ext.facade.session_access import status_rows, table_rows
from sql_ext.facade.table_report import TableReport


@dataclass(frozen=True)
class Inspect:
    """The state of a table: virtual tables as DataFrames, reports as lists of typed rows.

    Each method looks up the table and raises ``UseError`` if it does not exist. The rows of a DataFrame are computed
    from the current table when they are read; an error is then Spark's exception with the same condition.

    Attributes:
        spark: session that it uses.
        name: full name of the table.
    """

    spark: SparkSession
    name: str

    def optimizations(self) -> DataFrame:
        """One row per optimization of the table, newest first."""
        return self._virtual_table("optimizations")

    def revisions(self) -> DataFrame:
        """One row per revision, including revision 0 for the files that are not indexed."""
        return self._virtual_table("revisions")

    def cubes(self) -> DataFrame:
        """One row per revision and cube."""
        return self._virtual_table("cubes")

    def blocks(self) -> DataFrame:
        """One row per block of a cube in a file."""
        return self._virtual_table("blocks")

    def index_files(self) -> DataFrame:
        """One row per live file."""
        return self._virtual_table("index_files")

    def plans(self) -> DataFrame:
        """One row per group of each stored consolidation plan, with its progress."""
        return self._virtual_table("plans")

    def ingestion(self) -> DataFrame:
        """One row per commit, newest first: files, bytes, rows, and how well they fit the index."""
        return self._virtual_table("ingestion")

    def consumption(self) -> DataFrame:
        """One row per scan of the table by a finished query, if ``use.insights.consumption.enabled`` is set."""
        return self._virtual_table("consumption")

    health = operation_method(HEALTH)
    clustering_information = operation_method(CLUSTERING_INFORMATION)
    recommend = operation_method(RECOMMEND)

    @with_arguments_of(REPORT)
    def report(self, columns: list[str] | tuple[str, ...] | None = None) -> TableReport:
        """A page about the table with its health, index, files and optimizations: ``use.report``.

        Raises:
            UseError: a column is not indexed, or the package that draws the pictures is not installed.
        """
        row = rows_of(self.spark, REPORT, self.name, columns=columns)
        return TableReport(self.name, row.health or 0, row.html or "")

    @with_arguments_of(OPTIMIZE)
    def plan(
        self,
        *,
        strategy: str | None = None,
        revision_id: int | None = None,
        bytes_per_iter: int | None = None,
        max_iterations: int | None = None,
        max_bytes: int | None = None,
        max_duration: str | None = None,
        where: str | None = None,
        files: list[str] | tuple[str, ...] | None = None,
        revision_rewrite: bool = False,
        parallelism: int = 1,
        options: dict[str, str] | None = None,
        plan: str | None = None,
        groups: list[int] | tuple[int, ...] | None = None,
        quiet_period: str | None = None,
    ) -> list[OptimizeRow]:
        """The groups that ``maintenance.optimize`` would rewrite next: ``use.optimize`` with ``dry_run``.

        Returns:
            A row per group with the state ``planned``, or ``skipped`` for skipped groups.

        Raises:
            UseError: an argument is invalid, or the table cannot be optimized.
        """
        return rows_of(
            self.spark,
            OPTIMIZE,
            self.name,
            strategy=strategy,
            revision_id=revision_id,
            bytes_per_iter=bytes_per_iter,
            max_iterations=max_iterations,
            max_bytes=max_bytes,
            max_duration=max_duration,
            where=where,
            files=files,
            revision_rewrite=revision_rewrite,
            parallelism=parallelism,
            dry_run=True,
            options=options,
            plan=plan,
            groups=groups,
            quiet_period=quiet_period,
        )

    @with_arguments_of(PLAN)
    def consolidation_plan(
        self, *, max_file_bytes: int = DEFAULT_FILE_BYTES, columns: str | None = None, where: str | None = None
    ) -> list[PlanRow]:
        """Plans from metadata which files to rewrite together; ``maintenance.store_consolidation_plan`` also stores it.

        Returns:
            A row per group.

        Raises:
            UseError: an argument is invalid.
        """
        return rows_of(self.spark, PLAN, self.name, max_file_bytes=max_file_bytes, columns=columns, where=where)

    @with_arguments_of(CHECK)
    def check(self, *, deep: bool = False) -> list[CheckRow]:
        """Verifies the index; ``maintenance.repair`` also repairs it.

        Returns:
            A row per problem, at most 1,000, and a summary.

        Raises:
            UseError: the table does not exist.
        """
        return rows_of(self.spark, CHECK, self.name, deep=deep)

    @with_arguments_of(QUANTILES_PROCEDURE)
    def quantiles(self, column: str, *, n: int = 50, relative_error: float = 0.01) -> list[QuantilesRow]:
        """Estimates the quantiles of a column; ``maintenance.store_quantiles`` also stores them for the index.

        Raises:
            UseError: an argument is invalid.
        """
        return rows_of(self.spark, QUANTILES_PROCEDURE, self.name, column, n=n, relative_error=relative_error)

    def status(self) -> list[StatusRow]:
        """Runs, schedule and lease of the table: a row per run, or one row if there is no run."""
        return status_rows(self.spark, self.name)

    def _virtual_table(self, kind: str) -> DataFrame:
        # SQL does not say why a virtual table is missing; ``use.status`` does.
        status_rows(self.spark, self.name)
        return table_rows(self.spark, f"{self.name}.{kind}")
