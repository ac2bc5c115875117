"""The thread of a soak that calls procedures."""

import random
from itertools import cycle

from procedures.selection import strategies
from soak.board import Soak
from soak.history import Version
from soak.readers import SESSION, Reader


class Maintenance:
    """Vacuum, purge, consolidation of the log, strategies by call, and versions that are protected for a while."""

    def __init__(self, soak: Soak, reader: Reader, seed: int) -> None:
        self.soak, self.reader, self.chance = soak, reader, random.Random(seed)
        self.strategies = [name for name in strategies() if name not in ("FileList", "LatestRowCompaction")]
        self.steps = cycle((self._optimize, self._vacuum, self._optimize, self._protect, self._purge, self._log))
        self.protected: Version | None = None

    def step(self) -> None:
        """The next step."""
        next(self.steps)()

    def _optimize(self) -> None:
        strategy = self.chance.choice(self.strategies)
        more = {"options": {"fraction": "0.1"}} if strategy == "SamplingOverheadReduction" else {}
        rows = self.soak.call("optimize", strategy=strategy, max_iterations=2, **more)
        self.soak.board.count("maintenance: optimize")
        for row in rows:
            if row.state == "failed" and row.reason != "USE_CONCURRENT_CHANGE":
                self.soak.board.fail(f"optimize: {row.reason} {row.message}")

    def _vacuum(self) -> None:
        # It deletes uncommitted files, too, and no statement may take longer.
        self.soak.call("vacuum", retention_hours=2 * self.soak.retention / 3600, force=True)
        self.soak.board.count("maintenance: vacuum")

    def _purge(self) -> None:
        self.soak.call("purge", older_than=f"{self.soak.retention:.0f} seconds", force=True)
        self.soak.board.count("maintenance: purge")

    def _log(self) -> None:
        modes = ["table_metadata", "file_metadata", "events", "commits"]
        self.soak.call("consolidate_log", modes=modes)
        self.soak.board.count("maintenance: consolidate_log")

    def _protect(self) -> None:
        """Ends the protection of the last round, whose version has long expired, and begins another one."""
        self.unprotect()
        newest = self.soak.history.newest()
        self.soak.call("protect", version=newest.number, name="soak")
        self.protected = newest

    def unprotect(self) -> None:
        """Reads the protected version, and ends its protection."""
        if self.protected is None:
            return
        for engine in (SESSION, "delta"):
            if problem := self.reader.all_rows(self.protected, engine):
                self.soak.board.fail(f"protected version {self.protected.number}: {problem}")
        self.soak.call("unprotect", name="soak")
        self.protected = None
        self.soak.board.count("maintenance: protected and read")
