"""One Spark session for all tests that ask for it, and tables that are dropped afterwards."""

import collections
import itertools
import logging
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from left_out import left_out  # noqa: E402

from sql_ext.installed_versions import installed_versions  # noqa: E402

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["TZ"] = "UTC"
# Commands that tests start write no archive of classes in the background.
os.environ["USE_SPARK_CACHE"] = ""
time.tzset()

# Tests stage errors by the dozen, and pyspark logs the JVM's stack of each.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)

# A busy machine is slow, and no test is about that.
settings.register_profile(
    "tests",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(ROOT / "build" / "hypothesis"),
)
settings.load_profile("tests")

_numbers = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--shard", help="runs one part of the test files, such as 1/3; each has about as many slow tests")


def _of_shard(items, shard):
    """The files of a shard: the file with the most slow tests goes to the shard that has the fewest."""
    number, of = map(int, shard.split("/"))
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    loads = [0] * of
    chosen = set()
    for path, count in sorted(slow.items(), key=lambda pair: (-pair[1], pair[0])):
        least = loads.index(min(loads))
        loads[least] += count
        if least == number - 1:
            chosen.add(path)
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks the tests that need a session, and all but a sample of long lists of parameters as slow."""
    families = {}
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker("spark")
        sampled = item.get_closest_marker("quick_sample")
        if sampled is not None:
            families.setdefault((item.path, item.function.__name__), (sampled.args[0], []))[1].append(item)
    for count, family in families.values():
        last = len(family) - 1
        quick = {round(i * last / max(count - 1, 1)) for i in range(count)}
        for i, item in enumerate(family):
            if i not in quick:
                item.add_marker("slow")
    versions = installed_versions({})
    absent = {each.test for each in left_out(versions.spark, versions.delta)}
    _keep(config, items, lambda item: item.nodeid.partition("[")[0] not in absent)
    shard = config.getoption("shard")
    if shard:
        chosen = _of_shard(items, shard)
        _keep(config, items, lambda item: item.path in chosen)


def _keep(config, items, is_kept):
    """Deselects the other tests, which pytest counts in its summary."""
    config.hook.pytest_deselected(items=[item for item in items if not is_kept(item)])
    items[:] = [item for item in items if is_kept(item)]


def pytest_sessionfinish():
    """Closes what a process keeps open to its end."""
    warehouse = sys.modules.get("sql_ext.warehouse")
    for claim in warehouse._held.values() if warehouse else ():
        claim.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The session: two cores, UTC, everything it writes below a temporary folder."""
    from sessions import start_session

    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    # A test floods the callback port; how often is counted, and told when the server ends.
    logging.getLogger("sql_ext.callback_server").setLevel(logging.ERROR)
    session.stop()


def _factory(spark):
    from tables import create

    made = []

    def make(columns, **wishes):
        made.append(create(spark, f"default.t{next(_numbers)}", columns, **wishes))
        return made[-1]

    yield make
    for table in made:
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")


@pytest.fixture
def new_table(spark):
    """A factory of tables with unique names, dropped after the test: see ``tables.create``."""
    yield from _factory(spark)


@pytest.fixture(scope="module")
def shared_table(spark):
    """The same for tables that the tests of a module share and do not change."""
    yield from _factory(spark)


@pytest.fixture
def set_conf(spark):
    """Sets Spark settings for the length of a test."""
    before = {}

    def put(key, value):
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield put
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
