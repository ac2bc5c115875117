"""Every test of the service leaves the application without tables."""

import pytest

from procedures.process.application import application


@pytest.fixture(autouse=True)
def _clean():
    yield
    for known in application().automations.all():
        application().automations.remove(known.location)
