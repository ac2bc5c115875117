"""The health of a table and the advice, from facts about one version; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Flags
from catalog.files.file_table import FileTable
from otree.revision import Revision
from procedures.declare.result_rows import ShownRow
from procedures.insight.health.adviser import MeasuredIndex, advice_on, steps_of
from procedures.insight.health.health_parts import HealthFacts, parts_of
from procedures.insight.health.remedy import AdviceStep
from procedures.insight.health.score import SCALES, Part, score_of


@dataclass(frozen=True)
class HealthRow(ShownRow):
    """A part of the score of a table's health; the first row has the score.

    Attributes:
        part: ``total``, or what was measured.
        value: the score from 0 to 100, or what was measured.
        unit: of the value.
        fine: value up to which no point is lost; None in the first row.
        points_lost: points that the part takes off 100, and their sum in the first row.
        cost_per_read: bytes that an average read reads beyond those of a fresh table because of it; None if unknown.
        advice: statement that mends it, None if no point is lost; in the first row, what to do first, None if there is
            nothing to do.
    """

    part: str
    value: float
    unit: str
    fine: float | None
    points_lost: float
    cost_per_read: int | None
    advice: str | None


@dataclass(frozen=True)
class Diagnosis:
    """The state of one version of a table.

    Attributes:
        facts: those from which it is computed.
        parts: parts of the score.
        steps: the advised steps, in order.
    """

    facts: HealthFacts
    parts: list[Part]
    steps: tuple[AdviceStep, ...]

    @classmethod
    def of(cls, facts: HealthFacts) -> Diagnosis:
        """Computes the parts and the advice.

        Args:
            facts: about the version.
        """
        parts = parts_of(facts)
        return cls(facts, parts, steps_of(facts, parts))

    @property
    def score(self) -> int:
        """From 0 to 100."""
        return score_of(self.parts)

    def steps_with(self, measured: MeasuredIndex | None) -> tuple[AdviceStep, ...]:
        """Returns the steps, with an index that was measured.

        Args:
            measured: the index; None if none saves enough.
        """
        return self.steps if measured is None else steps_of(self.facts, self.parts, measured)

    def statement_for(self, part: Part) -> str | None:
        """Returns the statement that improves a part; None if it loses no point or no step is worth its cost.

        Args:
            part: one of ``parts``.
        """
        advice = advice_on(self.facts, self.parts, part) if part.lost else None
        return None if advice is None else advice.statement


def are_indexed(revisions: Mapping[int, Revision], files: FileTable, newest: Revision | None) -> Flags:
    """Whether the index skips each file by weight: weights are hashes of the columns of the newest revision.

    Args:
        revisions: the readable ones, by number.
        files: of the version.
        newest: the newest revision; None = no file is indexed.
    """
    if newest is None:
        return np.zeros(len(files), np.bool_)
    alike = [number for number, revision in revisions.items() if revision.columns == newest.columns]
    return np.isin(files.revision, alike) & (files.revision > 0)


def health_rows(diagnosis: Diagnosis) -> list[HealthRow]:
    """Returns the score with the first step, then the parts, the worst first.

    Args:
        diagnosis: of a table.
    """
    parts, steps = diagnosis.parts, diagnosis.steps
    first = steps[0].statement if steps else None
    total = HealthRow("total", diagnosis.score, "points", None, sum(part.lost for part in parts), None, first)
    ordered = sorted(parts, key=lambda part: -part.lost)
    return [total, *(_row(part, diagnosis.statement_for(part)) for part in ordered)]


def _row(part: Part, advice: str | None) -> HealthRow:
    scale = SCALES[part.name]
    return HealthRow(part.name, part.value, scale.unit, scale.fine, part.lost, part.cost_bytes, advice)
