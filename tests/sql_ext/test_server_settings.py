"""What a server was asked for, before anything is started; no Spark."""

import os
import socket

import pytest
from click.testing import CliRunner

from catalog.errors import InvalidArgumentError, UseError
from sql_ext.commands.command_line import cli
from sql_ext.commands.server_session import with_server_defaults
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.local_session import with_private_ports
from sql_ext.server.settings import NONE, ServerSettings

SECRET = "hush-hush-hush-hush"


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def free(**session_settings) -> ServerSettings:
    return ServerSettings(**{"port": 0, **session_settings})


def test_the_defaults_are_loopback_and_a_token():
    settings = free()
    settings.check({}, {})
    assert settings.loopback
    assert settings.warning is None


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("spark.connect.authenticate.token", "--token-file"),
        ("spark.connect.grpc.binding.port", "--connect-port"),
        ("spark.connect.grpc.binding.address", "--host"),
        ("spark.hadoop.hive.server2.authentication", "--auth"),
        ("spark.hive.server2.authentication", "--auth"),
        ("spark.hadoop.hive.server2.custom.authentication.class", "--auth"),
        ("spark.hadoop.hive.server2.thrift.port", "--port"),
        ("spark.hive.server2.thrift.bind.host", "--host"),
        ("spark.hadoop.hive.server2.transport.mode", "binary"),
    ],
)
def test_settings_that_contradict_the_options(key, instead):
    with pytest.raises(InvalidArgumentError) as refused:
        free().check({key: SECRET}, {})
    assert key in refused.value.message
    assert instead in refused.value.message
    assert SECRET not in refused.value.message


@pytest.mark.parametrize("name", ["SPARK_CONNECT_AUTHENTICATE_TOKEN", "HIVE_SERVER2_THRIFT_BIND_HOST"])
def test_variables_that_contradict_the_options(name):
    with pytest.raises(InvalidArgumentError, match=name) as refused:
        free().check({}, {name: SECRET})
    assert SECRET not in refused.value.message


def test_a_port_in_use(taken_port):
    for session_settings in ({"port": taken_port}, {"connect_port": taken_port}):
        with pytest.raises(UseError, match=f"port = {taken_port} on 127.0.0.1 is in use") as refused:
            free(**session_settings).check({}, {})
        assert refused.value.code == "USE_PORT_IN_USE"


def test_two_servers_on_one_port():
    with pytest.raises(InvalidArgumentError, match="connect_port = 10123"):
        ServerSettings(port=10123, connect_port=10123).check({}, {})
    free(connect_port=0).check({}, {})


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "", "a b"])
def test_hosts_that_are_not_here(host):
    with pytest.raises(InvalidArgumentError, match="host = "):
        free(host=host).check({}, {})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1.2.3"])
def test_loopback(host):
    assert free(host=host).loopback


@pytest.mark.parametrize(
    ("host", "auth", "words"),
    [
        ("0.0.0.0", "token", "unencrypted"),
        ("0.0.0.0", NONE, "anyone on the network that reaches 0.0.0.0"),
        ("127.0.0.1", NONE, "anyone on this machine"),
    ],
)
def test_warnings(host, auth, words):
    settings = free(host=host, auth=auth)
    settings.check({}, {})
    assert words in settings.warning


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--auth", "maybe"], 2, "maybe"),
        (["--port", "70000"], 2, "70000"),
        (["--port", "0", "--conf", f"spark.connect.authenticate.token={SECRET}"], 2, "--token-file replaces it"),
        (["--port", "0", "--host", "192.0.2.1"], 2, "an address of this machine"),
        (["--port", "0", "--token-file", "/dev/null/token"], 1, "token_file"),
    ],
)
def test_the_command_refuses_before_spark_starts(arguments, code, words):
    done = CliRunner().invoke(cli, ["thrift", *arguments])
    assert done.exit_code == code, done.output
    assert words in done.output
    assert SECRET not in done.output


def test_the_command_refuses_a_port_in_use(taken_port):
    done = CliRunner().invoke(cli, ["thrift", "--port", str(taken_port)])
    assert done.exit_code == 1
    assert done.output.strip().count("\n") == 0
    assert f"port = {taken_port} on 127.0.0.1 is in use" in done.output


def test_tables_survive_unless_somebody_says_where():
    assert str(with_server_defaults(SessionSettings({})).warehouse) == "spark-warehouse"
    elsewhere = {"spark.hadoop.hive.metastore.uris": "thrift://metastore:9083"}
    assert with_server_defaults(SessionSettings(elsewhere)).warehouse is None


def test_a_server_has_web_pages_only_when_asked_for():
    assert with_server_defaults(SessionSettings({})).conf["spark.ui.enabled"] == "false"
    assert with_server_defaults(SessionSettings({"spark.ui.enabled": "true"})).conf["spark.ui.enabled"] == "true"


@pytest.mark.parametrize("settings", [{}, {"spark.master": "local"}, {"spark.master": "local[2]"}])
def test_the_ports_of_a_local_session_are_private(monkeypatch, settings):
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    private = with_private_ports(settings)
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert (private["spark.authenticate"], private["spark.ui.killEnabled"]) == ("true", "false")
    asked = {**settings, "spark.authenticate": "false"}
    monkeypatch.setenv("SPARK_LOCAL_IP", "0.0.0.0")
    assert with_private_ports(asked)["spark.authenticate"] == "false"
    assert os.environ["SPARK_LOCAL_IP"] == "0.0.0.0"


@pytest.mark.parametrize("master", ["spark://somewhere:7077", "local-cluster[2,1,1024]", "yarn"])
def test_a_cluster_decides_about_its_ports_itself(monkeypatch, master):
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert with_private_ports({"spark.master": master}) == {"spark.master": master}
    assert "SPARK_LOCAL_IP" not in os.environ
