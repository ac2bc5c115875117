"""Facts of a report that no table has."""

import numpy as np

from procedures.insight.health.remedy import Advice, AdviceStep, Remedy
from procedures.insight.health.score import Part
from procedures.insight.report.facts import CubeBox, Event, FilteredColumns, TableFacts, VersionFacts

ADVICE = Advice(Remedy.OPTIMIZE, "CALL use.optimize('<t>')")
FACTS = TableFacts(
    name="lake.<script>alert('x')</script>",
    version=7,
    made_at=1_700_000_000_000,
    rows=1234,
    files=3,
    bytes=3_000_000,
    index_columns=("a$b$", "<b>"),
    shown_columns=("a$b$", "<b>"),
    cubes=(CubeBox((0.0, 1.0), (0.0, 1.0), 0, 100), CubeBox((0.0, 0.5), (0.5, 1.0), 1, 50)),
    all_cubes=9,
    sizes=np.array([1e6, 1e6, 1e6]),
    levels=np.array([-1.0, 2.0, 3.0]),
    depths=((0, 100), (1, 50)),
    bands=((0.1, 1_000_000), (1.0, 2_000_000)),
    samples=((0.01, 5e5, 4e5), (1.0, 3e6, 3e6)),
    versions=(VersionFacts(1, 1.0, 0.0, None), VersionFacts(7, 0.1, 0.5, 1.5)),
    events=(Event(1_700_000_000_000, "optimize", "UnindexedFiles", "committed", 10**6, 10**6),
            Event(1_700_000_100_000, "optimize", "<i>", "failed", 10**6, 0)),
    score=61,
    filtered_columns=(FilteredColumns("<u>, x", 7, None, 0.25),),
    parts=(Part("unindexed_share", 0.5, 10**6, ADVICE),),
    steps=(AdviceStep(ADVICE, 10**6, "Files are not indexed yet."),),
)  # fmt: skip
