"""A transaction that replaces files of a table by files with the same rows, or with some of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.file_writer import FileWriter
from catalog.jvm.java_values import JavaValue, data_frame, java_data, java_list, java_map, java_maps


class _Hold:
    """The function that a commit calls before its last check for conflicts.

    Args:
        wait: see ``TableTransaction.hold``.
    """

    class Java:
        """Read by Py4J."""

        implements = ("java.util.function.LongUnaryOperator",)

    def __init__(self, wait: Callable[[int], int]) -> None:
        self._wait = wait
        self.error: BaseException | None = None

    def applyAsLong(self, version: int) -> int:  # noqa: N802 - the name of the Java interface
        """Waits; an error is kept, since it would lose its type on the way."""
        try:
            return self._wait(version)
        except BaseException as error:
            self.error = error
            raise


class TableTransaction(FileWriter):
    """The shim's ``TableTransaction``; ``TableHandle.begin`` makes it.

    It reads the version that was newest when it began. Each step works with the settings of its session.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        super().__init__(spark, java)
        self._hold: _Hold | None = None

    def hold(self, wait: Callable[[int], int]) -> None:
        """Has the commit wait between its first and its last check for conflicts.

        The last check looks only at commits that came meanwhile, so that little time passes between the end of the wait
        and the commit. A commit without any concurrent one does not wait.

        Args:
            wait: gets the version that the commit is about to be, and returns which version it can be after the wait.
                If that is a later one, it is called again after the check. The commit fails with an error that it
                raises.
        """
        self._hold = _Hold(wait)
        self._java.hold(self._hold)

    def mark(self, text: str) -> None:
        """Puts a text into the names of all files that are written from now on.

        Args:
            text: letters, digits and hyphens.
        """
        self._java.mark(text)

    def replace_files(self, files: Iterable[tuple[str, str]]) -> int:
        """Names the files that the commit replaces.

        Args:
            files: path as in the log, and unique id of the deletion vector ('' without one), of each.

        Returns:
            How many of them are live in the version that the transaction reads.
        """
        return int(self._java.take(*self._paths_and_vectors(files)))

    def read(self) -> DataFrame:
        """Returns the live rows of the files that it replaces, with row ids where the table keeps them."""
        return data_frame(self._java.read(), self.spark)

    def depend_on(self, files: Iterable[tuple[str, str]]) -> int:
        """Names further files that the commit leaves as they are, and that no other commit may change before it.

        Args:
            files: as for ``replace_files``.

        Returns:
            How many of them are live in the version that the transaction reads.
        """
        return int(self._java.dependOn(*self._paths_and_vectors(files)))

    def _paths_and_vectors(self, files: Iterable[tuple[str, str]]) -> tuple[JavaValue, JavaValue]:
        identities = list(files)
        paths = java_list(self.spark, (path for path, _ in identities))
        return paths, java_list(self.spark, (vector for _, vector in identities))

    def read_dependencies(self) -> DataFrame:
        """Returns the rows of the files that the transaction depends on, without row ids."""
        return data_frame(self._java.readDependencies(), self.spark)

    def scan(self, paths: Iterable[str], numbered: bool = False) -> DataFrame:
        """Returns the same as ``read`` for some of the files.

        Args:
            paths: as in the log.
            numbered: whether ``_metadata.row_index`` is needed, the position of a row in its file.
        """
        return data_frame(self._java.scan(java_list(self.spark, paths), numbered), self.spark)

    def count(self, paths: Iterable[str]) -> int:
        """Counts the live rows of some of the files that it replaces, as the files have them.

        Args:
            paths: as in the log.
        """
        return self.scan(paths).count()

    def rows_by_time(self) -> dict[str, tuple[int, int]]:
        """Counts rows by the times that partition the table, as the log and the write tell them.

        Returns:
            By time, the rows of the files that it replaces, -1 if the log does not tell, and of the files written.
            Empty if no column of type TIMESTAMP partitions the table.
        """
        return {time: (before, after) for time, (before, after) in json.loads(self._java.rowsByTime()).items()}

    def in_runs(self, rows: DataFrame, runs: Sequence[Sequence[str]]) -> DataFrame:
        """Returns the rows with one Spark partition per run, in the order of the run and of each file.

        To be called once, in a session of its own: it changes how the session reads files.

        Args:
            rows: those of ``scan``, or some of them, without a shuffle.
            runs: paths of the files of the scan, as in the log, at least one in each run and each file once.
        """
        lists = java_list(self.spark, (java_list(self.spark, run) for run in runs))
        return data_frame(self._java.inRuns(java_data(rows), lists), self.spark)

    def write_deleted(self, rows: DataFrame) -> None:
        """Writes rows that the commit deletes to the change feed of the table; does nothing if it has none.

        Args:
            rows: rows with the columns of the table.
        """
        self._java.writeDeleted(java_data(rows))

    def commit(
        self,
        operation: str,
        parameters: Mapping[str, str],
        tags_by_path: Mapping[str, Mapping[str, str]],
        data_change: bool = False,
    ) -> int:
        """Removes the files that it replaces and adds the files written, in one commit.

        Args:
            operation: name in the table's history.
            parameters: operation parameters in the table's history.
            tags_by_path: tags of the files written.
            data_change: whether rows were left out, so that readers of changes see the commit.

        Returns:
            The version committed.

        Raises:
            Exception: that of the function which the commit waited for.
        """
        tags = java_maps(self.spark, tags_by_path)
        try:
            return int(self._java.commit(operation, java_map(self.spark, parameters), tags, data_change))
        except Py4JJavaError:
            if self._hold is not None and self._hold.error is not None:
                raise self._hold.error from None
            raise

    def replace_entries(self, files: DataFrame, operation: str, parameters: Mapping[str, str], large: bool) -> int:
        """Commits other metadata of live files, and what was configured, without data change.

        Args:
            files: rows of ``TableState.files``, changed.
            operation: name in the table's history.
            parameters: operation parameters in the table's history.
            large: streams the files instead of collecting them; such a commit conflicts with every concurrent one.

        Returns:
            The version committed.
        """
        return int(self._java.restate(java_data(files), operation, java_map(self.spark, parameters), large))

    def commit_properties(self, operation: str, parameters: Mapping[str, str]) -> int:
        """Commits what was configured, without files.

        Such a commit reads no files, so that only a concurrent change of the metadata conflicts with it. Where it sets
        properties of the index and changes nothing else, it fails no concurrent writer of Delta 3.3 or later that
        changes no metadata itself.

        Args:
            operation: name in the table's history.
            parameters: operation parameters in the table's history.

        Returns:
            The version committed.
        """
        return int(self._java.commitProperties(operation, java_map(self.spark, parameters)))

    def discard(self) -> int:
        """Deletes the files written, after a commit that certainly did not happen; returns how many are left."""
        return int(self._java.discard())
