"""Random histories with protections, purges and vacuums, and purges that are killed, against rows kept by hand."""

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from tables import DeltaTable

import sql_ext

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
VECTORS = {"delta.enableDeletionVectors": "true"}


class History:
    """A table, the rows of each version, and what was asked of it."""

    def __init__(self, table, chance):
        self.table, self.chance, self.spark = table, chance, table.spark
        self.rows, self.of_version, self.next_id = Counter(), {0: Counter()}, 0
        self.protected, self.keep, self.log = {}, 0, []

    def append(self):
        numbers = range(self.next_id, self.next_id + self.chance.choice((3, 40)))
        self.next_id = numbers.stop
        rows = [(n, n % 7) for n in numbers]
        self.rows = self.rows + Counter(rows)
        self.table.append(self.spark.createDataFrame(rows, "id BIGINT, v BIGINT"), files=self.chance.choice((1, 2)))

    def delete(self):
        part = self.chance.randrange(5)
        self.table.sql(f"DELETE FROM {{t}} WHERE id % 5 = {part}")
        self.rows = Counter({row: n for row, n in self.rows.items() if row[0] % 5 != part})

    def update(self):
        part = self.chance.randrange(4)
        self.table.sql(f"UPDATE {{t}} SET v = v + 1 WHERE id % 4 = {part}")
        self.rows = Counter((n, v + (n % 4 == part)) for n, v in self.rows.elements())

    def cluster(self):
        self.table.optimize(strategy="SizeTieredClustering", options={"min_files": "2"})

    def compact(self):
        sql_ext.call(self.spark, "compact", table=self.table.name, min_deleted_ratio=0.0).collect()

    def protect(self):
        version = self.chance.randint(self.keep, self.table.version)
        name = f"p{len(self.log)}"
        sql_ext.call(self.spark, "protect", table=self.table.name, version=version, name=name).collect()
        self.protected[name] = version

    def unprotect(self):
        if self.protected:
            name = self.chance.choice(sorted(self.protected))
            del self.protected[name]
            sql_ext.call(self.spark, "unprotect", table=self.table.name, name=name).collect()

    def purge(self):
        self.keep = self.chance.randint(self.keep, self.table.version)
        sql_ext.call(self.spark, "purge", table=self.table.name, older_than=self.keep, force=True).collect()

    def vacuum(self):
        self.keep = self.table.version
        sql_ext.call(self.spark, "vacuum", table=self.table.name, retention_hours=0.0, force=True).collect()

    def step(self):
        writes = (self.append, self.append, self.delete, self.update)
        others = (self.cluster, self.compact, self.unprotect, self.protect, self.protect)
        chosen = self.chance.choice((*writes, *writes, *others))
        if len(self.log) % 5 == 4:
            chosen = self.chance.choice((self.purge, self.purge, self.vacuum))
        self.log.append(chosen.__name__)
        chosen()
        for version in range(max(self.of_version) + 1, self.table.version + 1):
            self.of_version[version] = self.rows
        if chosen in (self.purge, self.vacuum):
            self.check()

    def check(self):
        lost = 0
        for version, rows in self.of_version.items():
            found = rows_of(self.table, version)
            if found is None:
                assert version < self.keep, (version, self.keep, self.log)
                assert version not in self.protected.values(), (version, self.protected, self.log)
                lost += 1
            else:
                assert found == rows, (version, self.log)
        assert rows_of(self.table, None) == self.rows
        return lost


def rows_of(table, version):
    """The rows of a version; None if it was reclaimed, which no other error may say."""
    travel = "" if version is None else f" VERSION AS OF {version}"
    try:
        return Counter((r.id, r.v) for r in table.spark.sql(f"SELECT id, v FROM {table.name}{travel}").collect())
    except AnalysisException as error:
        if error.getCondition() == "USE_VERSION_RECLAIMED":
            return None
        raise


@pytest.mark.parametrize("seed", range(3))
def test_what_is_retained_or_protected_stays(new_table, seed):
    chance = random.Random(seed)
    history = History(new_table("id BIGINT, v BIGINT", properties=VECTORS), chance)
    for _ in range(25):
        history.step()
    history.purge()
    assert history.check() > 0, history.log
    # The log is cleaned up as far as protections let it.
    if history.chance.random() < 0.5:
        history.table.checkpoint()
    while history.protected:
        history.unprotect()
    history.keep = history.table.version
    sql_ext.call(history.spark, "purge", table=history.table.name, older_than=history.keep, force=True).collect()
    history.of_version |= dict.fromkeys(range(max(history.of_version) + 1, history.table.version + 1), history.rows)
    history.check()
    live = {file for file in history.table.on_disk() if "deletion_vector" not in file}
    assert len(live) == len(history.spark.sql(f"SELECT * FROM {history.table.name}").inputFiles())


CHILD = """
    import os, signal, sys
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from sessions import start_session
    import sql_ext
    from catalog.jvm.table_vacuum import TableVacuum
    from catalog.jvm.table_versions import TableVersions
    from catalog.history import event_expiry

    point = {point!r}

    def die(*_):
        os.killpg(0, signal.SIGKILL)

    def first_file_then_die(vacuum, mode, files):
        os.remove(files.first().path.removeprefix("file:"))
        die()

    def first_entry_then_die(versions, version):
        entries = sorted(Path({path!r}, "_delta_log").glob("0*.json"))
        os.remove(entries[0])
        die()

    if point == "files":
        TableVacuum.delete_all = first_file_then_die
    elif point == "recorded":
        TableVacuum.delete_all = die
    elif point == "vacuumed":
        TableVersions.log_guard = die
    elif point == "checkpoint":
        TableVersions.checkpoint = die
    else:
        TableVersions.delete_log_before = first_entry_then_die
    spark = start_session(Path({folder!r}))
    Path({marker!r}).touch()
    sql_ext.call(spark, "purge", table="delta.`{path}`", older_than={keep}, force=True).collect()
"""


@pytest.mark.parametrize("point", ["recorded", "files", "vacuumed", "checkpoint", "log"])
@pytest.mark.quick_sample(0)
def test_a_killed_purge_is_continued_by_the_next(spark, tmp_path, point):
    path, marker, script = tmp_path / "t", tmp_path / "ready", tmp_path / "child.py"
    name = f"delta.`{path}`"
    properties = "TBLPROPERTIES ('delta.checkpointInterval' = '99')"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v BIGINT) USING delta {properties}")
    history = History(DeltaTable(spark, name), random.Random(point))
    for n in range(14):
        (history.delete if n % 4 == 3 else history.append)()
        history.of_version[history.table.version] = history.rows
    history.protected["p"] = 11
    sql_ext.call(spark, "protect", table=name, version=11, name="p").collect()
    history.keep = 13
    wanted = {"support": str(ROOT / "tests/support"), "folder": str(tmp_path / "spark"), "marker": str(marker)}
    script.write_text(textwrap.dedent(CHILD).format(**wanted, path=str(path), keep=history.keep, point=point))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.run(
            [sys.executable, str(script)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
            timeout=300,
        )
    assert process.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()[-2000:]
    assert marker.exists()
    history.of_version |= dict.fromkeys(range(max(history.of_version) + 1, history.table.version + 1), history.rows)
    history.check()
    # The lease of the killed purge ends within a minute.
    (path / "_use" / "lease.json").unlink(missing_ok=True)
    sql_ext.call(spark, "purge", table=name, older_than=history.keep, force=True).collect()
    history.of_version |= dict.fromkeys(range(max(history.of_version) + 1, history.table.version + 1), history.rows)
    assert history.check() >= 11
    assert not (path / "_delta_log" / f"{10:020d}.json").exists()
