"""Files in memory appear with their text."""

import pytest

from catalog.table import managed_table


@pytest.fixture(scope="module", autouse=True)
def _no_wait_for_texts():
    """Random texts are often empty, and each would be read again for half a second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(managed_table, "_SECONDS_UNTIL_WRITTEN", ())
        yield
