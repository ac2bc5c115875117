"""A transaction that replaces files of a table by files with the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from catalog.jvm.file_writer import FileWriter
from catalog.jvm.java_values import data_frame, java_data, java_list, java_map, java_maps


class TableTransaction(FileWriter):
    """The shim's ``TableTransaction``; ``TableHandle.begin`` makes it.

    It reads the version that was newest when it began. Each step works with the settings of its session.
    """

    def take(self, files: Iterable[tuple[str, str]]) -> int:
        """Chooses the files to replace.

        Args:
            files: path as in the log, and unique id of the deletion vector ('' without one), of each.

        Returns:
            How many of them are live in the version that the transaction reads.
        """
        identities = list(files)
        paths = java_list(self.spark, (path for path, _ in identities))
        vectors = java_list(self.spark, (vector for _, vector in identities))
        return int(self._java.take(paths, vectors))

    def read(self) -> DataFrame:
        """Returns the rows of the files taken: without rows that deletion vectors hide, with row ids where kept."""
        return data_frame(self._java.read(), self.spark)

    def read_runs(self, runs: Sequence[Sequence[str]]) -> DataFrame:
        """Returns the rows of files taken, one Spark partition per run, in the order of the run and of each file.

        To be called once, in a session of its own: it changes how the session reads files.

        Args:
            runs: paths of files, as in the log, at least one in each run and none twice; a file that was taken and is
                in no run is not read.
        """
        lists = java_list(self.spark, (java_list(self.spark, run) for run in runs))
        return data_frame(self._java.readRuns(lists), self.spark)

    def commit(
        self, operation: str, parameters: Mapping[str, str], tags_by_path: Mapping[str, Mapping[str, str]]
    ) -> int:
        """Removes the files taken and adds the files written, in one commit without data change.

        Args:
            operation: name in the table's history.
            parameters: operation parameters in the table's history.
            tags_by_path: tags of the files written.

        Returns:
            The version committed.
        """
        tags = java_maps(self.spark, tags_by_path)
        return int(self._java.commit(operation, java_map(self.spark, parameters), tags))

    def restate(self, files: DataFrame, operation: str, parameters: Mapping[str, str], large: bool) -> int:
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
