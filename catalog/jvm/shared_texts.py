"""Small texts in a folder that several applications share, each of which is created once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, java_list, jvm_session

_CLASS = "io.usespark.SharedTexts"


class SharedTexts:
    """The shim's ``SharedTexts``; Delta's store of commits decides who creates a text.

    Args:
        spark: session whose file systems are used.
        folder: URI of the folder; it is made with the first text.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.folder = folder
        self._spark = spark
        self._java = java_class(spark, _CLASS)(jvm_session(spark), folder)

    @classmethod
    def of_metastore(cls, spark: SparkSession, name: str) -> SharedTexts:
        """The folder of a name below the location of the database ``default``.

        Args:
            spark: session whose metastore counts.
            name: relative path of the folder.
        """
        return cls(spark, str(java_class(spark, _CLASS).ofMetastore(jvm_session(spark), name)))

    def create(self, name: str, text: str) -> bool:
        """Writes a text unless there is one of this name; returns whether it was written."""
        return bool(self._java.create(name, text))

    def read(self, name: str) -> str | None:
        """Returns the text of a name; None if there is none. A text of more than 64 MB is an error."""
        text = self._java.read(name)
        return None if text is None else str(text)

    def names(self) -> list[str]:
        """Returns all names, sorted; none if the folder is missing."""
        return sorted(json.loads(self._java.names()))

    def delete(self, names: Sequence[str]) -> None:
        """Deletes texts, in this order; missing ones are no error."""
        self._java.delete(java_list(self._spark, names))
