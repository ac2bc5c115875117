"""How many requests the claims of a plan's groups need; the files are a dictionary, and no Spark is needed."""

from collections import Counter

from fake_clock import FakeClock

from catalog.state.lease import LEASE_MILLIS
from catalog.state.plan_claims import DONE, FAILED, RUNNING, STALE, GroupClaims, GroupState

GROUPS = 100


class FakePlan:
    """What claims need of a stored plan."""

    plan_id, folder = "0" * 12, "plans/0"


class FakeTable:
    """A table whose state files are in memory; counts the requests."""

    state_folder = "memory:/t/_use"

    def __init__(self):
        self.files = {}
        self.requests = Counter()

    def create_state(self, file, text):
        self.requests["create"] += 1
        return self.files.setdefault(file, text) is text

    def write_state(self, file, text):
        self.requests["write"] += 1
        self.files[file] = text

    def read_state(self, file):
        self.requests["read"] += 1
        return self.files.get(file)

    def delete_state(self, file):
        self.requests["delete"] += 1
        self.files.pop(file, None)

    def list_state(self, folder):
        self.requests["list"] += 1
        return sorted(f.removeprefix(f"{folder}/") for f in self.files if f.startswith(f"{folder}/"))

    def put(self, group_id, state, expires_at=0):
        text = GroupState(state, "other", "host:1", "call", 1, expires_at).to_json()
        self.files[f"plans/0/groups/{group_id}.json"] = text


def _claims(table, clock):
    return GroupClaims(table, FakePlan, "mine", "call", clock)


def test_a_dry_run_reads_only_the_groups_that_have_a_file():
    table, clock = FakeTable(), FakeClock()
    for group_id in range(1, 11):
        table.put(group_id, DONE)
    claims = _claims(table, clock)
    for _ in range(3):
        claims.list_claimed()
    states = [claims.state(group_id) for group_id in range(1, GROUPS + 1)]
    assert sum(state is not None for state in states) == 10
    assert table.requests == {"list": 1, "read": 10}


def test_groups_that_are_over_need_one_request_each():
    table, clock = FakeTable(), FakeClock()
    for group_id in range(1, GROUPS):
        table.put(group_id, DONE if group_id % 2 else STALE)
    table.put(3, RUNNING, clock.now() + LEASE_MILLIS)
    claims = _claims(table, clock)
    claims.list_claimed()
    states = [claims.take(group_id) for group_id in range(1, GROUPS + 1)]
    assert [state is None for state in states] == [False] * (GROUPS - 1) + [True]
    assert table.requests == {"list": 1, "read": GROUPS, "create": 1}


def test_groups_that_may_be_taken_again_are_taken():
    table, clock = FakeTable(), FakeClock()
    table.put(1, RUNNING, clock.now() - 1)
    table.put(2, FAILED)
    table.put(3, STALE)
    table.put(4, DONE)
    claims = _claims(table, clock)
    claims.list_claimed()
    # The file of a group that was given back is gone.
    del table.files["plans/0/groups/4.json"]
    assert [claims.take(group_id, again=True) for group_id in (1, 2, 3, 4, 5)] == [None] * 5
    assert all('"run_id":"mine"' in text for text in table.files.values())
    # Another run has taken a group since the groups were listed.
    table.put(6, RUNNING, clock.now() + LEASE_MILLIS)
    assert claims.take(6).run_id == "other"
