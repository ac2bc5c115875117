"""``table.inspect``: methods that read a table and never change it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from procedures.declare.result_rows import (
    CheckRow,
    ClusteringInformationRow,
    HealthRow,
    OptimizeRow,
    PlanRow,
    QuantilesRow,
    RecommendRow,
    ReportRow,
    StatusRow,
)
from sql_ext.facade.session_access import consolidation_plan, report, status_rows, table_rows
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

    def health(self) -> list[HealthRow]:
        """The score of the table's health, and its parts: ``use.health``."""
        return report(self.spark, HealthRow, "health", table=self.name)

    def report(self, columns: list[str] | tuple[str, ...] | None = None) -> TableReport:
        """A page about the table with its health, index, files and optimizations: ``use.report``.

        Args:
            columns: the one or two indexed columns over which cubes are drawn; the first two by default.

        Raises:
            UseError: a column is not indexed, or the package that draws the pictures is not installed.
        """
        (row,) = report(self.spark, ReportRow, "report", table=self.name, columns=columns)
        return TableReport(self.name, row.health or 0, row.html or "")

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
    ) -> list[OptimizeRow]:
        """The groups that ``maintenance.optimize`` would rewrite next: ``use.optimize`` with ``dry_run``.

        Args:
            strategy: as for ``maintenance.optimize``, like all other arguments.
            revision_id: revision to optimize.
            bytes_per_iter: bytes after which an iteration takes no further file.
            max_iterations: maximum number of groups.
            max_bytes: bytes after which no further group starts.
            max_duration: time after which no further group starts.
            where: only files that may contain rows that match this predicate.
            files: only these files.
            revision_rewrite: whether files of older revisions come first.
            parallelism: number of concurrent groups.
            options: options of the strategies.
            plan: shows groups of this stored plan, in place of what strategies choose.
            groups: with ``plan``: only these groups.

        Returns:
            A row per group with the state ``planned``, or ``skipped`` for skipped groups.

        Raises:
            UseError: an argument is invalid, or the table cannot be optimized.
        """
        return report(
            self.spark,
            OptimizeRow,
            "optimize",
            table=self.name,
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
        )

    def consolidation_plan(
        self, *, max_file_bytes: int = 1_073_741_824, columns: str | None = None, where: str | None = None
    ) -> list[PlanRow]:
        """Plans from metadata which files to rewrite together; ``maintenance.store_consolidation_plan`` also stores it.

        Args:
            max_file_bytes: bytes that a file should have.
            columns: columns by whose ranges files overlap, separated by commas; the indexed ones by default.
            where: only files that may contain rows that match this predicate.

        Returns:
            A row per group.

        Raises:
            UseError: an argument is invalid.
        """
        return consolidation_plan(self.spark, self.name, max_file_bytes, columns, where, store=False)

    def clustering_information(self, columns: str | None = None) -> list[ClusteringInformationRow]:
        """Shows from metadata how well some columns separate the files.

        Args:
            columns: column names separated by commas; the indexed columns by default.

        Returns:
            A row per column, and for several columns one more row for all of them.

        Raises:
            UseError: a column does not exist or has no ranges, or no column is given and none is indexed.
        """
        return report(self.spark, ClusteringInformationRow, "clustering_information", table=self.name, columns=columns)

    def recommend(
        self, queries: list[str] | tuple[str, ...] | None = None, *, sample_rows: int = 100000
    ) -> list[RecommendRow]:
        """Measures on a sample of the rows which index columns save some queries the most bytes.

        Args:
            queries: queries, each one SELECT over the table.
            sample_rows: rows of the sample, 1,000 to 1,000,000.

        Returns:
            A row per candidate, the best first.

        Raises:
            UseError: a query cannot be used, or the table is empty.
        """
        return report(self.spark, RecommendRow, "recommend", table=self.name, queries=queries, sample_rows=sample_rows)

    def check(self, *, deep: bool = False) -> list[CheckRow]:
        """Verifies the index; ``maintenance.repair`` also repairs it.

        Args:
            deep: whether to read the indexed columns of every indexed file and place each row.

        Returns:
            A row per problem, at most 1,000, and a summary.

        Raises:
            UseError: the table does not exist.
        """
        return report(self.spark, CheckRow, "check", table=self.name, deep=deep, repair=False)

    def quantiles(self, column: str, *, n: int = 50, relative_error: float = 0.01) -> list[QuantilesRow]:
        """Estimates the quantiles of a column; ``maintenance.store_quantiles`` also stores them for the index.

        Args:
            column: column of numbers, dates, timestamps or strings; a nested field as ``a.b``.
            n: number of quantiles, 2 to 10,000, including the smallest and the largest value.
            relative_error: maximum error of a quantile's rank, as a share of the rows: 0.0001 to 0.5.

        Raises:
            UseError: an argument is invalid.
        """
        return report(
            self.spark,
            QuantilesRow,
            "quantiles",
            table=self.name,
            column=column,
            n=n,
            relative_error=relative_error,
            store=False,
        )

    def status(self) -> list[StatusRow]:
        """Runs, schedule and lease of the table: a row per run, or one row if there is no run."""
        return status_rows(self.spark, self.name)

    def _virtual_table(self, kind: str) -> DataFrame:
        # SQL does not say why a virtual table is missing; ``use.status`` does.
        status_rows(self.spark, self.name)
        return table_rows(self.spark, f"{self.name}.{kind}")
