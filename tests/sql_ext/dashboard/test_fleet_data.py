"""The numbers of the page are those of ``use.fleet``."""

from dataclasses import replace

from fleet_fakes import DAY, HOUR, NOW, SCHEDULE, fleet_of, known_table

from catalog.state.automation import RUNNING, Automation
from catalog.state.fleet_ledger import LedgerState, OpenRun, Spending
from catalog.state.lease import Lease
from procedures.declare.runs import AUTOMATIC, CALL, Run
from procedures.fleet.outcomes import Outcome
from procedures.service.fleet_overview import Member, fleet_rows
from sql_ext.dashboard.fleet_data import HealthNote, Notes, Seen, fleet_data, running, short_reason
from sql_ext.dashboard.saving_days import saving_by_day

NOTHING = Seen((), (), (), LedgerState(), {}, {})


def _data(**parts):
    return fleet_data(replace(NOTHING, **parts), (), Notes(), NOW)


def test_lines_and_sums_are_the_rows_of_the_fleet():
    members = [Member(known_table(n), SCHEDULE) for n in range(9)]
    ledger = LedgerState((Spending(NOW - HOUR, "shop", 1_000),))
    data = _data(members=members, ledger=ledger)
    rows = fleet_rows(members, ledger, NOW)
    assert [line.row for line in data.lines] + [*data.databases, data.total] == rows
    assert [row.database for row in data.budgets] == [None, "shop"]
    assert data.budgets[1].budget_left == 8_400_000_000 - 1_000


def test_days_add_up_to_the_sums_of_the_fleet():
    outcomes = (
        Outcome(NOW - 40 * DAY, 1, 0.5, 0.9, 1_000_000.0, 0.5),
        Outcome(NOW - 3 * DAY // 2, 1, 0.5, 0.9, 500_000.0, 0.25),
        Outcome(NOW - DAY, 1, 0.5, 0.9, 700_000.0, None),
    )
    member = Member(known_table(1), SCHEDULE, outcomes=outcomes)
    ledger = LedgerState(tuple(Spending(NOW - hours * HOUR, "web", 10) for hours in range(100)))
    days = saving_by_day([member], ledger, NOW)
    assert len(days) == 30
    assert [day.day.hour for day in days] == [0] * 30
    assert sum(day.spent for day in days) == 1_000
    # The first of the days began less than 30 days ago.
    since = int(days[0].day.timestamp() * 1000)
    assert abs(sum(day.saved for day in days) - sum(o.saved_since(since, NOW) for o in outcomes)) <= 30
    assert days[0].saved == 1_000_000
    assert days[-1].saved == round(1_250_000 * (NOW % DAY) / DAY)


def test_runs_of_this_process_tell_how_far_they_are():
    run = Run("t", "/wh/1", AUTOMATIC, {}, NOW, current="group 2", committed=1, committed_bytes=250)
    call = replace(run, trigger=CALL, run_id="call")
    data = _data(runs=[("file:/wh/1", run), ("file:/wh/1", call)], offered={"file:/wh/1": 1_000})
    assert [(line.share, line.of_bytes, line.bytes) for line in data.runs] == [(0.25, 1_000, 250), (None, None, 250)]


def test_runs_of_other_processes_come_from_leases_and_the_ledger():
    table = known_table(0)
    lease = Lease("run-a", "host:1", "cli", NOW - HOUR, NOW + 1)
    member = Member(table, SCHEDULE, lease=lease)
    ledger = LedgerState(runs=(
        OpenRun("run-a", table.name, "shop", "host:1", NOW + 1), OpenRun("run-b", "other", "shop", "host:2", NOW + 1),
        OpenRun("run-c", "ended", "shop", "host:2", NOW),
    ))  # fmt: skip
    data = _data(members=[member], ledger=ledger)
    assert [(run.table, run.holder, run.trigger) for run in data.runs] == [
        (table.name, "host:1", "cli"),
        ("other", "host:2", None),
    ]
    assert (data.lines[0].row.state, data.lines[0].row.reason) == (RUNNING, "run run-a of host:1")
    assert running(data) == 2
    expired = _data(members=[replace(member, lease=replace(lease, expires_at=NOW))])
    assert (expired.runs, expired.lines[0].row.state) == ((), "unknown")


def test_a_table_by_path_is_shown_too():
    automation = Automation("delta.`/t`", "file:/t", "failed", last_error="USE_X: no", next_run=NOW)
    (line,) = _data(automations=[automation], health={"file:/t": HealthNote(1, 7, "overlap")}).lines
    assert (line.name, line.row.state, line.row.reason, line.score) == ("delta.`/t`", "failed", "USE_X: no", 7)
    assert line.next_run.timestamp() * 1000 == NOW


def test_reasons_are_counted_without_their_numbers():
    assert short_reason("BUDGET_USED_UP: use.fleet.maxBytes = 5") == "BUDGET_USED_UP"
    assert short_reason("12 tasks of 4,000 are queued; the limit is 2") == "… tasks of … are queued"
    assert short_reason(None) == "next in the order"
    data = fleet_of(700)
    assert dict(data.waiting_reasons) == {"waits for its turn": 99, "BUDGET_USED_UP": 99}


def test_the_sickest_come_first_and_healthy_tables_are_left_out():
    data = fleet_of(60)
    scores = [line.score for line in data.sickest]
    assert scores == sorted(scores)
    assert 100 not in scores
    assert data.measured == 20
