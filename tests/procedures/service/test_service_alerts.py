"""Alerts about the health of tables, without Spark: when the service looks, and what it tells."""

import pytest
from fake_clock import FakeClock
from folders import folder_table
from service_fakes import FakeService

from catalog.errors import InvalidArgumentError, UseError
from catalog.properties.alert_properties import HEALTH_PARTS, SCORE, alert_policy
from catalog.properties.names import unknown_property
from procedures.insight.health.score import SCALES
from procedures.process.application import application
from procedures.process.notifications import ALERT, RECOVERED, RUN_FAILED, Notifications
from procedures.service.health_alerts import STATE_FILE, crossed_before, look

BELOW, SMALL, INTERVAL = "use.health.alert.below", "use.health.alert.small_files", "use.health.interval"
MINUTE = 60_000
NOW = 1_000


def _receiver(notifications):
    got = []
    notifications.subscribe(lambda notification: got.append((notification.kind, notification.message.split(",")[0])))
    return got


def test_each_part_of_health_has_a_threshold():
    assert set(HEALTH_PARTS) == set(SCALES)
    assert unknown_property("use.health.alert.overlap") is None
    assert "use.health.alert.overlap" in unknown_property("use.health.alert.overlaps").message


def test_what_the_properties_mean():
    assert alert_policy({"use.optimization.type": "x", INTERVAL: "1 hour"}) is None
    policy = alert_policy({BELOW: "80", SMALL: "3.5", "owner": "me"})
    assert (policy.below, dict(policy.above), policy.interval) == (80, {"small_files": 3.5}, 60 * MINUTE)
    assert alert_policy({BELOW: "80", INTERVAL: "5 minutes"}).interval == 5 * MINUTE
    assert policy.crossed({SCORE: 80.0, "small_files": 3.5}) == {}
    assert policy.crossed({SCORE: 79.0, "small_files": 4.0}) == {SCORE: 80.0, "small_files": 3.5}
    # A part that does not apply to the table crosses nothing.
    assert policy.crossed({SCORE: 90.0}) == {}
    for key, value in ((BELOW, "0"), (BELOW, "101"), (BELOW, "low"), (SMALL, "-1"), (SMALL, "nan"), (INTERVAL, "soon")):
        with pytest.raises(InvalidArgumentError, match=key):
            alert_policy({BELOW: "80", key: value})


def test_a_threshold_is_told_when_it_is_crossed_and_not_at_each_look(tmp_path, caplog):
    table, policy, notifications = folder_table(tmp_path), alert_policy({BELOW: "80", SMALL: "3"}), Notifications()
    got = _receiver(notifications)

    def see(score, small):
        look(table, policy, {SCORE: score, "small_files": small}, NOW, notifications)
        seen = list(got)
        got.clear()
        return seen

    assert see(90.0, 1.0) == []
    assert see(70.0, 1.0) == [(ALERT, "the score of health")]
    assert "the score of health, 70, is below 80: CALL use.health says what mends it" in caplog.text
    assert see(60.0, 1.0) == []
    assert see(60.0, 4.0) == [(ALERT, "small_files")]
    # Another process knows what was told.
    assert crossed_before(folder_table(tmp_path)) == {SCORE, "small_files"}
    assert see(85.0, 4.0) == [(RECOVERED, "the score of health")]
    table.write_state(STATE_FILE, '{"crossed": [1]}')
    assert see(85.0, 4.0) == [(ALERT, "small_files")]


def test_an_error_of_a_receiver_disturbs_nothing(caplog):
    notifications = Notifications()

    def fail(_notification):
        raise ValueError("no")

    notifications.subscribe(fail)
    got = _receiver(notifications)
    subscription = notifications.subscribe(fail)
    subscription.cancel()
    subscription.cancel()
    fake = FakeService()
    fake.tables.put("t", {BELOW: "80"})
    fake.engine.error = UseError("It broke, badly.", code="USE_BROKEN")
    forwarded = application().notifications.subscribe(notifications.send)
    fake.tick()
    forwarded.cancel()
    assert got == [(RUN_FAILED, "USE_BROKEN: It broke")]
    assert caplog.text.count("A receiver of run_failed of t failed: no") == 1


def test_the_service_looks_once_in_an_interval():
    fake = FakeService()
    fake.tables.put("t", {BELOW: "80", INTERVAL: "30 minutes"})
    for _ in range(13):
        fake.tick(10 * MINUTE)
    assert fake.engine.health_checks == ["t"] * 5
    (state,) = application().automations.all()
    assert state.strategies == ("HealthCheck",)
    assert isinstance(fake.clock, FakeClock)
