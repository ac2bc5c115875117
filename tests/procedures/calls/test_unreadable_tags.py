"""A tag or a revision that cannot be read makes files unindexed: no row is lost, and nothing breaks."""

import json

import pytest
from tables import NUMBERS, PlainReads, numbers

import sql_ext
from catalog.errors import IndexUnreadableError
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from sql_ext import SampleReason, read_report

# Seven columns, so that a level of a cube id takes two symbols.
COLUMNS = tuple("abcdefg")


def _block(**values):
    """Changes fields of the file's last block; None removes a field."""

    def change(tags):
        blocks = json.loads(tags["blocks"])
        blocks[-1].update(values)
        blocks[-1] = {key: value for key, value in blocks[-1].items() if value is not None}
        tags["blocks"] = json.dumps(blocks)

    return change


def _text(edit):
    """Changes the text of the tag."""

    def change(tags):
        tags["blocks"] = edit(tags["blocks"])

    return change


def _tag(key, value):
    def change(tags):
        tags[key] = value

    return change


UNREADABLE = {
    "an unknown symbol": _block(cubeId="A_"),
    "a symbol that is no letter of ours": _block(cubeId="Äg"),
    "a surrogate": _block(cubeId="\ud800A"),
    "half a level": _block(cubeId="A"),
    "a level and a half": _block(cubeId="AAA"),
    "more bits than dimensions": _block(cubeId="AB"),
    "a number for a cube": _block(cubeId=55),
    "null for a cube": _text(lambda text: text.replace('"cubeId":"', '"cubeId":null,"was":"', 1)),
    "weights reversed": _block(minWeight=MAX_WEIGHT, maxWeight=MIN_WEIGHT),
    "a weight below all": _block(minWeight=MIN_WEIGHT - 1),
    "a weight above all": _block(maxWeight=MAX_WEIGHT + 1),
    "a fraction for a weight": _block(minWeight=-1.5),
    "a text for a weight": _block(minWeight="5"),
    "a negative count": _block(elementCount=-1),
    "a count above all": _block(elementCount=2**63),
    "a field missing": _block(maxWeight=None),
    "a field too many": _block(extra=1),
    "a field twice": _text(lambda text: text.replace('"minWeight"', '"minWeight":5,"minWeight"', 1)),
    "no block": _text(lambda _: "[]"),
    "an object": _text(lambda text: text[1:-1]),
    "text": _text(lambda _: "blocks"),
    "nothing": _text(lambda _: ""),
    "null": _text(lambda _: "null"),
    "a null block": _text(lambda text: text.replace("[", "[null,", 1)),
    "cut off": _text(lambda text: text[:-5]),
    "text behind": _text(lambda text: text + "]"),
    "deep": _text(lambda text: text[:-1] + "," + "[" * 5000 + "]" * 5000 + "]"),
    "an unknown revision": _tag("revision", "9"),
    "a revision that is no number": _tag("revision", "one"),
    "a negative revision": _tag("revision", "-1"),
    "a revision in another spelling": _tag("revision", "01"),
    "a revision beyond all": _tag("revision", "9" * 30),
}
WRONG_BANDS = ("x", "5", "7,3", "5,6", "9" * 30 + ",", f"{MAX_WEIGHT},{MAX_WEIGHT + 1}")


def _commit(table, actions):
    text = "\n".join(json.dumps(a) for a in [{"commitInfo": {"operation": "TAMPER", "timestamp": 1}}, *actions])
    (table.path / "_delta_log" / f"{table.version + 1:020d}.json").write_text(text + "\n", encoding="utf-8")


def _damage(table, changes):
    live, _ = table.replayed()
    actions = []
    for path, change in changes.items():
        add = json.loads(json.dumps(live[path]))
        if "use.band" in add["tags"]:
            del add["tags"]["use.band"]  # of a file with a band, the rows in it are known without the blocks
        change(add["tags"])
        actions.append({"add": {**add, "dataChange": False}})
    _commit(table, actions)


def _errors(table):
    rows = sql_ext.call(table.spark, "check", table=table.name).collect()
    return {r.path for r in rows if r.severity == "error" and r.path}


@pytest.mark.slow
def test_no_tag_hides_a_row_or_breaks_anything(spark, new_table, caplog):
    columns = ", ".join(f"pmod(xxhash64(id, '{c}'), 1000) {c}" for c in COLUMNS)
    table = new_table(", ".join(f"{c} BIGINT" for c in COLUMNS), index=",".join(COLUMNS), cube_size=40, file_bytes=900)
    table.append(spark.sql(f"SELECT {columns} FROM range(3200)")).index()
    paths = sorted(f.path for f in table.files if f.blocks[-1].element_count)
    assert len(paths) > len(UNREADABLE) + len(WRONG_BANDS) + 10
    before = table.checksum()
    damages = dict(zip(paths, [*UNREADABLE.values(), *(_tag("use.band", band) for band in WRONG_BANDS)], strict=False))
    bad, banded = set(paths[: len(UNREADABLE)]), set(paths[len(UNREADABLE) : len(damages)])
    values = {r.path: tuple(r)[:-1] for r in table.data.selectExpr("*", "_metadata.file_name path").collect()}
    _damage(table, damages)

    # No file without such tags has a row of so small a weight.
    nothing = read_report(table.data.sample(1e-9))
    assert nothing.scans[0].kept_files >= len(bad)
    assert nothing.scans[0].kept_files <= len(bad) + len(banded)
    names = dict(zip(UNREADABLE, sorted(bad), strict=True))
    for what, path in names.items():
        row = values[path]
        found = table.data.where(" AND ".join(f"{c} = {v}" for c, v in zip(COLUMNS, row, strict=True)))
        assert found.count() >= 1, what
    assert table.checksum() == before

    assert _errors(table) == bad | banded
    shown = spark.sql(f"SELECT path, revision_id FROM {table.name}.index_files").collect()
    assert {r.path for r in shown if r.revision_id == 0} == bad
    for name in ("blocks", "cubes", "revisions"):
        assert spark.sql(f"SELECT * FROM {table.name}.{name}").collect(), name
    table.optimize()
    assert f"{len(bad)} files have index tags that cannot be read" in caplog.text
    assert table.unindexed == []
    assert table.checksum() == before
    sql_ext.call(spark, "check", table=table.name, repair=True)
    table.optimize(strategy="UnindexedFiles")
    assert _errors(table) == set()
    assert table.checksum() == before


@pytest.fixture(scope="module")
def two_revisions(spark, shared_table):
    """Files of revision 1 by x and y, and of revision 2 by s."""
    made = shared_table(NUMBERS, index="x,y", cube_size=20, file_bytes=900).append(numbers(spark, 600)).index()
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='s')")
    return made.append(numbers(spark, 300, start=600)).index()


@pytest.fixture
def configured(two_revisions):
    """Sets table properties by hand, and puts all of them back after the test."""
    table = two_revisions
    original = table.replayed()[1]

    def change(values):
        metadata = json.loads(json.dumps(original))
        metadata["configuration"].update(values)
        metadata["configuration"] = {k: v for k, v in metadata["configuration"].items() if v is not None}
        _commit(table, [{"metaData": metadata}])

    yield change
    _commit(table, [{"metaData": original}])


def _of_a_later_version(table, number):
    text = table.replayed()[1]["configuration"][f"qbeast.revision.{number}"]
    return text.replace("LinearTransformation", "SpiralTransformation").replace("HashTransf", "SpiralTransf")


def _reads_everything(table):
    for condition in ("x < 0.1 AND y < 100", "s = 's7'", "s = 's7' AND x > 0.5"):
        with PlainReads(table.spark):
            wanted = sorted(table.data.where(condition).collect())
        assert sorted(table.data.where(condition).collect()) == wanted, condition
    for name in ("blocks", "cubes", "index_files", "revisions"):
        assert table.spark.sql(f"SELECT * FROM {table.name}.{name}").collect(), name


def _problems(table):
    rows = sql_ext.call(table.spark, "check", table=table.name).collect()
    return {(r.check, r.revision_id) for r in rows if r.severity == "error" and r.check != "SUMMARY"}


@pytest.mark.slow
def test_an_old_revision_that_cannot_be_read(two_revisions, configured):
    table = two_revisions
    configured({"qbeast.revision.1": _of_a_later_version(table, 1)})
    _reads_everything(table)
    report = read_report(table.data.sample(1e-9))
    assert report.weight_filters == 1
    assert report.scans[0].pruned, "the other revision still skips files"
    assert report.scans[0].kept_files >= sum(f.revision == 1 for f in table.files)
    assert _problems(table) == {("REVISION_UNREADABLE", 1), ("REVISION_UNKNOWN", 1)}
    plan = table.optimize(strategy="UnindexedFiles", dry_run=True)
    assert plan, "its files are indexed again"


@pytest.mark.slow
@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("values", [{"qbeast.revision.2": "{"}, {"qbeast.revision.2": None}], ids=["broken", "missing"])
def test_a_newest_revision_that_cannot_be_read(two_revisions, configured, values):
    table = two_revisions
    configured(values)
    _reads_everything(table)
    (sample,) = read_report(table.data.sample(0.1)).spark_samples
    assert sample.reason is SampleReason.INDEX_UNREADABLE
    key = next(iter(values))
    assert key in sample.detail
    assert ("REVISION_UNREADABLE", 2 if values.get("qbeast.revision.2") else None) in _problems(table)
    state = table.state()
    with pytest.raises(IndexUnreadableError, match=key) as failure:
        table.optimize()
    assert "\n" not in str(failure.value)
    with pytest.raises(Exception, match=key):
        numbers(table.spark, 5).write.format("qbeast").mode("append").save(str(table.path))
    assert table.state() == state


@pytest.mark.slow
def test_the_number_of_a_lost_revision_is_not_given_again(spark, new_table):
    """Otherwise files that carry it would be read as files of the new revision, and their rows skipped."""
    table = new_table(NUMBERS, index="x,y", cube_size=50, file_bytes="3kb").append(numbers(spark, 600)).index()
    files = {f.path for f in table.files}
    table.sql(
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('qbeast.lastRevisionID', 'qbeast.revision.0', 'qbeast.revision.1', "
        "'use.index.columnsAsIndexed')"
    )
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='id,s')")
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"}, max_iterations=1)
    assert files & {f.path for f in table.files}, "files of the lost revision are left"
    assert max(table.revisions) == 2
    for condition in ("id BETWEEN 50 AND 70", "id = 599", "s = 's7'"):
        with PlainReads(spark):
            wanted = sorted(table.data.where(condition).collect())
        assert sorted(table.data.where(condition).collect()) == wanted
