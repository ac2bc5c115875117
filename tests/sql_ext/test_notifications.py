"""Functions that the service calls."""

import pytest

import sql_ext


def test_what_cannot_be_called_is_refused():
    with pytest.raises(sql_ext.UseError, match=r"receiver = 5 is not accepted: a function that takes a Notification\."):
        sql_ext.on_event(5)
