"""What mistakes of clients, and errors of the server, leave in its log."""

import pytest
from server_process import wait_for
from sql_clients import ClientError, ConnectClient, PyHiveClient

MISTAKES = {
    "SELEC 1": "[PARSE_SYNTAX_ERROR]",
    "SELECT nope": "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION]",
    "CALL use.nope()": "[USE_UNKNOWN_PROCEDURE]",
    "CALL use.optimize('nope')": "[USE_TABLE_NOT_FOUND]",
    "SELECT 1/0": "[DIVIDE_BY_ZERO]",
}


def new_lines(server, before, last):
    """The log from there on, once it holds the last one."""
    wait_for(lambda: last in server.output[before:], f"the log says {last}")
    return server.output[before:].splitlines()


@pytest.mark.parametrize("kind", [PyHiveClient, ConnectClient], ids=["pyhive", "connect"])
def test_mistakes_are_one_line_each_and_internal_errors_keep_their_stacks(server, kind):
    before = len(server.output)
    with pytest.raises(Exception, match=r"Error validating the login|Invalid authentication token|UNAUTHENTICATED"):
        kind(server, "not-the-token-of-this-server").run("SELECT 1")
    with kind(server) as client:
        for mistake in MISTAKES:
            with pytest.raises(ClientError):
                client.run(mistake)
        with pytest.raises(ClientError):
            client.run("SELECT java_method('java.lang.Integer', 'parseInt', 'a bug')")
    lines = new_lines(server, before, 'NumberFormatException: For input string: "a bug"')
    first_stack = next(place for place, line in enumerate(lines) if line.startswith("\tat "))
    one_line_each = "\n".join(lines[: first_stack - 1])
    assert "Traceback" not in one_line_each
    assert "pipeout" not in server.output  # Hive's error about a missing folder, at the end of a session
    if kind is PyHiveClient:  # Spark Connect logs no errors of statements
        expected = ["The token is missing or wrong", *MISTAKES.values()]
        assert len(expected) <= first_stack - 1 <= len(expected) + 1, one_line_each
        assert [words for words in expected if one_line_each.count(words) != 1] == []
