"""What a strategy is, and the arithmetic that all strategies share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from catalog.table.snapshot import TableSnapshot
from procedures.declaration import Parameter
from procedures.optimizer.plan import InputFile, Selection

# A group is collected by the driver: its number of files is bounded like its bytes are.
MAX_FILES_PER_GROUP = 10_000


@dataclass(frozen=True)
class SelectionSettings:
    """What a caller may ask of a strategy.

    Attributes:
        bytes_per_iter: bytes after which no further file is taken; the crossing file is taken too.
        revision_id: revision to optimize, None = the newest.
        options: values of the strategy's own options, checked and complete.
        memory: whatever the strategy wants to keep from one iteration of a run to the next; empty when a run begins.
    """

    bytes_per_iter: int
    revision_id: int | None
    options: Mapping[str, Any]
    memory: dict[str, Any] = field(default_factory=dict)


class Strategy(ABC):
    """Chooses the files of one iteration from a snapshot's metadata, and touches nothing."""

    name: ClassVar[str]
    doc: ClassVar[str]
    options: ClassVar[tuple[Parameter, ...]] = ()
    needs_index_columns: ClassVar[bool] = True

    def check_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027 - most have nothing to check
        """Refuses values of the strategy's options that fit their types and still make no sense.

        Args:
            options: all of them, by name.

        Raises:
            InvalidArgumentError: such a value.
        """

    @abstractmethod
    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """Returns the group to rewrite next, if there is one.

        Args:
            snapshot: the table; its files are those that may be chosen.
            settings: what the caller asks for.
        """


def take_until(files: Iterable[InputFile], limit: int) -> tuple[InputFile, ...]:
    """Takes files in order until their bytes cross ``limit``, the crossing file included.

    Lazy: files after the crossing one are not asked for.
    """
    taken: list[InputFile] = []
    total = 0
    for file in files:
        if total >= limit or len(taken) >= MAX_FILES_PER_GROUP:
            break
        taken.append(file)
        total += file.size
    return tuple(taken)
