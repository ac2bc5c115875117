"""The progress bar of a run, without Spark."""

from types import SimpleNamespace

import pytest

from catalog.settings.session_settings import PROGRESS
from procedures.loop.progress import Progress


def session(value):
    return SimpleNamespace(
        conf=SimpleNamespace(get=lambda key, default=None: {PROGRESS.name: value}.get(key) or default)
    )


def show(value):
    with Progress(session(value), "optimize t") as progress:
        progress.planned(100, "2 unindexed files")
        progress.done(60)
        progress.done(40)


# Standard error is no terminal while tests capture it.
@pytest.mark.parametrize("value", ["false", "auto", " AUTO ", None])
def test_it_is_silent_where_nobody_would_see_it(value, capsys):
    show(value)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", ["true", " TRUE "])
def test_it_shows_what_is_rewritten_and_how_much_of_it(value, capsys):
    show(value)
    shown = capsys.readouterr().err
    for part in ("optimize t", "2 unindexed files", "100%"):
        assert part in shown
