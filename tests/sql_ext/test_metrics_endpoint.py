"""The HTTP endpoint of the metrics, without Spark."""

import socket
import sys
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from catalog.errors import InvalidArgumentError, MissingPackageError, UseError
from procedures.service.service_metrics import METRICS, RunTotals, ServiceMetrics
from sql_ext.server import metrics_endpoint as module
from sql_ext.server.metrics_address import MetricsAddress
from sql_ext.server.metrics_endpoint import metrics_endpoint


def test_prometheus_reads_current_values():
    pytest.importorskip("prometheus_client")
    metrics = ServiceMetrics()
    with metrics_endpoint(MetricsAddress(0), lambda: metrics.samples((), 0)) as url:
        metrics.record_run("failed", RunTotals(10, 7, 1))
        with urlopen(url) as response:
            lines = response.read().decode().splitlines()
    assert 'use_service_runs_total{outcome="failed"} 1.0' in lines
    assert 'use_service_runs_total{outcome="completed"} 0.0' in lines
    assert "use_service_input_bytes_total 10.0" in lines
    types = [line.split()[2:] for line in lines if line.startswith("# TYPE")]
    assert types == [[m.name, m.kind] for m in METRICS]


def test_tables_have_series_if_there_are_any():
    pytest.importorskip("prometheus_client")
    metrics = ServiceMetrics(1)
    with metrics_endpoint(MetricsAddress(0), lambda: metrics.samples((), 0)) as url:
        assert "use_table" not in urlopen(url).read().decode()
        metrics.record_run("failed", RunTotals(10, 7), 'c.d.`a"b`')
        metrics.record_run("completed", RunTotals(5, 4), "c.d.t")
        lines = urlopen(url).read().decode().splitlines()
    assert 'use_table_runs_total{table="c.d.`a\\"b`"} 1.0' in lines
    assert 'use_table_input_bytes_total{table="other"} 5.0' in lines


def test_health_is_that_of_the_service():
    pytest.importorskip("prometheus_client")
    problems = [None, "the last look\nwas long ago", ValueError("x")]

    def problem():
        now = problems.pop(0)
        if isinstance(now, Exception):
            raise now
        return now

    with metrics_endpoint(MetricsAddress(0), list, problem) as url:
        health = url.replace("/metrics", "/healthz")
        with urlopen(health) as response:
            assert (response.status, response.read()) == (200, b"ok\n")
        for reason in (b"the last look was long ago\n", b"unknown: x\n"):
            with pytest.raises(HTTPError) as refused:
                urlopen(health)
            assert (refused.value.code, refused.value.read()) == (503, reason)
            refused.value.close()


def test_a_used_port_and_an_unknown_host_are_refused():
    pytest.importorskip("prometheus_client")
    with metrics_endpoint(MetricsAddress(0), list) as url:
        port = int(url.split(":")[2].split("/")[0])
        in_use = f"metrics-port = {port} on 127.0.0.1 is in use"
        with pytest.raises(UseError, match=in_use) as refused, metrics_endpoint(MetricsAddress(port), list):
            pass
    assert refused.value.code == "USE_PORT_IN_USE"
    with (
        pytest.raises(InvalidArgumentError, match="metrics-host"),
        metrics_endpoint(MetricsAddress(0, "192.0.2.1"), list),
    ):
        pass
    # The first endpoint has closed its port.
    with metrics_endpoint(MetricsAddress(port), list):
        pass


def test_silent_clients_are_few_and_have_to_go(monkeypatch, capfd):
    pytest.importorskip("prometheus_client")
    monkeypatch.setattr(module, "_MOST_CONNECTIONS", 3)
    monkeypatch.setattr(module._Connection, "timeout", 1.0)
    with metrics_endpoint(MetricsAddress(0), list) as url:
        port = int(url.split(":")[2].split("/")[0])
        silent = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(5)]
        # Those beyond the limit are closed at once, and the others when they have sent nothing for too long.
        started = time.monotonic()
        assert [connection.recv(1) for connection in reversed(silent)] == [b""] * 5
        assert time.monotonic() - started < 10
        assert urlopen(url).status == 200
    for connection in silent:
        connection.close()
    assert capfd.readouterr().err == ""


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    install = r'pip install "use-spark\[metrics\]"'
    with pytest.raises(MissingPackageError, match=install), metrics_endpoint(MetricsAddress(0), list):
        pass
