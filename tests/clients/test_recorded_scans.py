"""What queries of a server's clients leave in ``<table>.consumption``."""

from server_process import wait_for


def test_a_query_of_a_client_is_recorded_with_its_user(onlooker, new_name):
    name = new_name()
    onlooker.run(f"CREATE TABLE {name} (a INT) USING delta TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    onlooker.run(f"INSERT INTO {name} VALUES (1), (2), (3)")
    assert len(onlooker.run(f"SELECT a FROM {name} WHERE a > 1")) == 2
    text = f"SELECT session_kind, statement_id IS NOT NULL, filters[0].column, rows_kept FROM {name}.consumption"
    rows = wait_for(lambda: onlooker.run(text), "records of a scan")
    assert [tuple(map(str, row)) for row in rows] == [("thrift", "True", "a", "2")]
