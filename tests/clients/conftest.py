"""One server for the tests of its clients; all of them are slow, since they start processes."""

import itertools
from pathlib import Path

import pytest
from server_process import Server
from sql_clients import CLIENTS, PyHiveClient

HERE = Path(__file__).resolve().parent
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A running server, which lets in who has its token."""
    running = Server(tmp_path_factory.mktemp("server"))
    try:
        running.wait_until_ready()
        yield running
    finally:
        code = running.stop()
    assert code == 0, running.output


@pytest.fixture(params=CLIENTS, scope="module")
def client(request, server):
    """A connection of each kind."""
    with CLIENTS[request.param](server) as connected:
        yield connected


@pytest.fixture(scope="session")
def onlooker(server):
    """A second connection, which prepares and looks at what others do."""
    with PyHiveClient(server) as connected:
        yield connected


@pytest.fixture
def new_name(onlooker):
    """Names of tables that are dropped afterwards."""
    made = []

    def name() -> str:
        made.append(f"c{next(_numbers)}")
        return made[-1]

    yield name
    for table in made:
        onlooker.run(f"DROP TABLE IF EXISTS {table}")
