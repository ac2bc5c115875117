"""What a strategy and its selectors are, and the arithmetic that all strategies share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from catalog.errors import InvalidArgumentError
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import InputFile, Selection

# A group is collected by the driver: its number of files is bounded like its bytes are.
MAX_FILES_PER_GROUP = 10_000
# The option of strategies that make progress with any number of files: bytes that they take in an iteration.
BATCH_OPTION = "batch_bytes"


@dataclass(frozen=True)
class SelectionSettings:
    """What a caller may ask of a strategy.

    Attributes:
        bytes_per_iter: bytes after which no further file is taken; the crossing file is taken too.
        revision_id: revision to optimize, None = the newest.
        options: values of the strategy's own options, checked and complete.
        named_files: the files that the run is restricted to, as the caller spells them; None = all files.
    """

    bytes_per_iter: int
    revision_id: int | None
    options: Mapping[str, Any]
    named_files: tuple[str, ...] | None = None

    def with_batch_limit(self, most_bytes: int | None) -> SelectionSettings:
        """The same with ``batch_bytes`` of at most this size; unchanged where there is no limit or no such option."""
        if most_bytes is None or BATCH_OPTION not in self.options:
            return self
        return replace(self, options={**self.options, BATCH_OPTION: min(most_bytes, self.options[BATCH_OPTION])})


class Selector(ABC):
    """Chooses the files of each iteration of one run. It lives as long as the run and may keep what it computes."""

    def __init__(self, settings: SelectionSettings) -> None:
        """Begins with these settings.

        Args:
            settings: what the caller asks for.
        """
        self._requested = settings
        self.settings = settings

    @abstractmethod
    def select(self, snapshot: TableSnapshot) -> Selection:
        """Returns the group to rewrite next, if there is one. Reads metadata only.

        Args:
            snapshot: the table; its files are those that may be chosen.
        """

    def limit_batches(self, most_bytes: int | None) -> None:
        """Limits the option ``batch_bytes`` in ``settings``; strategies without this option are not limited.

        Args:
            most_bytes: the limit until the next call; None lifts it.
        """
        self.settings = self._requested.with_batch_limit(most_bytes)


class Strategy(ABC):
    """Says how the files of a run are chosen. It has no state: one instance serves all runs.

    A subclass overrides ``select`` if each choice depends on the snapshot alone. If a run has to remember something,
    the subclass overrides ``begin`` and returns a ``Selector`` of its own.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
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

    def begin(self, settings: SelectionSettings) -> Selector:
        """Returns the selector of a new run.

        Args:
            settings: what the caller asks for.
        """
        return _EachSnapshot(self, settings)

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """Returns the group to rewrite next, if there is one. Reads metadata only.

        Args:
            snapshot: the table; its files are those that may be chosen.
            settings: what the caller asks for.
        """
        return self.begin(settings).select(snapshot)


@dataclass(frozen=True)
class SettingsWithMemory(SelectionSettings):
    """The settings that ``Strategy.select`` gets.

    Attributes:
        memory: empty when a run begins and kept to its end, for strategies written before there were selectors.
    """

    memory: dict[str, Any] = field(default_factory=dict)


class _EachSnapshot(Selector):
    """Selects with the ``select`` of a strategy."""

    def __init__(self, strategy: Strategy, settings: SelectionSettings) -> None:
        super().__init__(
            SettingsWithMemory(settings.bytes_per_iter, settings.revision_id, settings.options, settings.named_files)
        )
        self._strategy = strategy

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``."""
        return self._strategy.select(snapshot, self.settings)


def check_strategy(strategy: object) -> None:
    """Refuses what cannot select files.

    Raises:
        InvalidArgumentError: not an instance of a subclass of ``Strategy`` that overrides ``select`` or ``begin``.
    """
    if not isinstance(strategy, Strategy):
        accepted = "an instance of a subclass of sql_ext.Strategy"
        raise InvalidArgumentError.of("strategy", repr(strategy), accepted)
    kind = type(strategy)
    if kind.select is Strategy.select and kind.begin is Strategy.begin:
        accepted = "a class that overrides select(self, snapshot, settings) or begin(self, settings)"
        raise InvalidArgumentError.of("strategy", kind.__name__, accepted)
    for attribute in ("name", "doc"):
        if not isinstance(getattr(strategy, attribute, None), str):
            accepted = f"a class with an attribute {attribute} of type str"
            raise InvalidArgumentError.of("strategy", kind.__name__, accepted)


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


def check_least(options: Mapping[str, Any], least: Mapping[str, int]) -> None:
    """Refuses whole numbers below a limit.

    Args:
        options: values of the strategy's options; None is no number.
        least: the smallest accepted number by option.

    Raises:
        InvalidArgumentError: a number is smaller.
    """
    for name, number in least.items():
        value = options[name]
        if value is not None and value < number:
            raise InvalidArgumentError.of(name, value, f"a whole number of at least {number}")
