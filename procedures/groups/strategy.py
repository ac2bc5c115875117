"""What a strategy is: a function from the files of a table to groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from catalog.errors import InvalidArgumentError
from catalog.files.file_table import FileTable
from catalog.insights.recorded_scans import RecordedScans
from catalog.settings.strategy_options import BATCH_BYTES
from catalog.table.snapshot import TableSnapshot
from procedures.declare.signature import Parameter
from procedures.groups.group import Group, SkippedGroup

# The option of strategies that make progress with any number of files: bytes that they take in an iteration.
BATCH_OPTION = BATCH_BYTES.name

Finding = Group | SkippedGroup | str
"""What a strategy finds: a group to rewrite, one that it passes over, or a sentence that says why it finds no more."""


@dataclass(frozen=True)
class SelectionSettings:
    """What a caller may ask of a strategy.

    Attributes:
        bytes_per_iter: bytes after which no further file is taken; the crossing file is taken too.
        revision_id: revision to optimize, None = the newest.
        options: values of the strategy's own options, checked and complete.
        named_files: the files that the run is restricted to, as the caller spells them; None = all files.
        budget_bytes: bytes after which a budget lets no strategy take a further file, whatever it would take; None = no
            budget.
    """

    bytes_per_iter: int
    revision_id: int | None
    options: Mapping[str, Any]
    named_files: tuple[str, ...] | None = None
    budget_bytes: int | None = None

    def with_batch_limit(self, most_bytes: int | None) -> SelectionSettings:
        """The same with ``batch_bytes`` of at most this size; unchanged where there is no limit or no such option."""
        if most_bytes is None or BATCH_OPTION not in self.options:
            return self
        return replace(self, options={**self.options, BATCH_OPTION: min(most_bytes, self.options[BATCH_OPTION])})


@dataclass(frozen=True, eq=False)
class RunSoFar:
    """What a run has done with a strategy before it asks it for groups.

    Attributes:
        first: what could be chosen from when it asked first; None = it asks first.
        failed: paths of files whose groups were not committed because of a conflict, and are to be planned again.
        is_contended: whether the last groups were not committed because of conflicts.
    """

    first: TableFiles | None = None
    failed: frozenset[str] = field(default=frozenset())
    is_contended: bool = False


def _not_recorded(_: int) -> None:
    """See ``TableFiles.scans``."""


@dataclass(frozen=True, eq=False)
class TableFiles:
    """What a strategy chooses from.

    Attributes:
        snapshot: the version of the table, with its properties, its revisions and its schema.
        run: what the run has done so far.
        scans: returns the recorded scans of the table since a time in epoch milliseconds; None if it does not record
            them.
    """

    snapshot: TableSnapshot
    run: RunSoFar = field(default=RunSoFar())
    scans: Callable[[int], RecordedScans | None] = field(default_factory=lambda: _not_recorded)

    @property
    def files(self) -> FileTable:
        """The files that may be chosen."""
        return self.snapshot.file_table

    @property
    def first(self) -> TableFiles:
        """What could be chosen from when the run asked the strategy first."""
        return self if self.run.first is None else self.run.first


class Strategy(ABC):
    """Chooses the groups of files that are rewritten. It has no state: one instance serves all runs."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    doc: ClassVar[str]
    options: ClassVar[tuple[Parameter, ...]] = ()
    needs_index_columns: ClassVar[bool] = True
    # Whether its groups stay worth a rewrite while others of the same version are rewritten.
    findings_last: ClassVar[bool] = False

    @abstractmethod
    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """Yields the groups to rewrite, no file in two of them; reads metadata only.

        It is asked for as many groups as are wanted. After a ``Relayout`` was committed, unless its
        ``findings_last``, and after a conflict, it is called anew with the newest version of the table; so it is once
        it has no more groups, until it yields none.

        Args:
            table: the files that may be chosen.
            settings: what the caller asks for.
        """

    def check_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027 - most have nothing to check
        """Refuses values of the strategy's options that fit their types and still make no sense.

        Args:
            options: all of them, by name.

        Raises:
            InvalidArgumentError: such a value.
        """

    def check_named_files(
        self,
        names: Sequence[str],  # noqa: ARG002 - most strategies choose among any files
        texts: Mapping[str, str],  # noqa: ARG002
        options: Mapping[str, Any],
    ) -> None:
        """Refuses files that the caller names, or options that make no sense together with them.

        Args:
            names: of the files.
            texts: options that the caller names, as text.
            options: values of all options of the strategy, by name.

        Raises:
            InvalidArgumentError: such a name or value.
        """
        self.check_options(options)


def check_strategy(strategy: object) -> None:
    """Refuses what cannot choose groups.

    Raises:
        InvalidArgumentError: not an instance of a subclass of ``Strategy`` with a name and a sentence.
    """
    if not isinstance(strategy, Strategy):
        accepted = "an instance of a subclass of sql_ext.Strategy that overrides groups(self, table, settings)"
        raise InvalidArgumentError.of("strategy", repr(strategy), accepted)
    for attribute in ("name", "doc"):
        if not isinstance(getattr(strategy, attribute, None), str):
            accepted = f"a class with an attribute {attribute} of type str"
            raise InvalidArgumentError.of("strategy", type(strategy).__name__, accepted)


def one_after_another(files: FileTable, choose: Callable[[FileTable], Iterable[Finding]]) -> Iterator[Finding]:
    """Yields groups each of which is chosen among the files that those before it leave.

    Args:
        files: the files.
        choose: finds at most one group among some files.
    """
    while True:
        group: Group | None = None
        for finding in choose(files):
            group = finding if isinstance(finding, Group) else group
            yield finding
        if group is None:
            return
        files = files.where(~files.with_paths([file.path for file in group.files]))
