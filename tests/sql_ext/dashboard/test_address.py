"""Where the dashboard listens, and what opens it."""

import sys

import pytest

from catalog.errors import InvalidArgumentError, MissingPackageError, UseError
from sql_ext.dashboard.address import Access, DashboardAddress, open_port


def test_the_url_has_a_new_token_each_time():
    with open_port(DashboardAddress(0)) as one, open_port(DashboardAddress(0)) as other:
        assert one.url == f"http://127.0.0.1:{one.access.port}/?token={one.access.token}"
        assert len(one.access.token) >= 43
        assert one.access.token != other.access.token
        assert one.notes == ()


def test_a_token_in_a_file_is_not_in_the_url(tmp_path):
    file = tmp_path / "token"
    with open_port(DashboardAddress(0, token_file=file)) as port:
        assert port.access.token == file.read_text().strip()
        assert port.access.token not in port.url
        assert port.notes == (f"the token of the dashboard is in {file}",)
    file.chmod(0o644)
    with pytest.raises(InvalidArgumentError, match="chmod 600"), open_port(DashboardAddress(0, token_file=file)):
        pass


def test_a_port_that_is_open_to_others_has_a_warning(tmp_path):
    assert DashboardAddress().warning is None
    assert "anyone on this machine" in DashboardAddress(auth="none").warning
    assert "anyone on the network that reaches 0.0.0.0" in DashboardAddress(host="0.0.0.0", auth="none").warning
    assert "does not encrypt" in DashboardAddress(host="0.0.0.0").warning
    both = DashboardAddress(auth="none", token_file=tmp_path / "token", prefix="dashboard-")
    with pytest.raises(InvalidArgumentError, match=r"dashboard-token-file = .* nothing together with dashboard-auth"):
        both.check()
    with pytest.raises(InvalidArgumentError, match="auth = 'basic' is not accepted: one of token, none"):
        DashboardAddress(auth="basic").check()


def test_a_used_port_and_an_unknown_host_are_refused():
    with open_port(DashboardAddress(0)) as port:
        taken = DashboardAddress(port.access.port, prefix="dashboard-")
        in_use = f"dashboard-port = {port.access.port} on 127.0.0.1 is in use"
        with pytest.raises(UseError, match=in_use) as refused, open_port(taken):
            pass
        assert refused.value.code == "USE_PORT_IN_USE"
    with open_port(taken):
        pass
    for host in ("192.0.2.1", "no such host"):
        with pytest.raises(InvalidArgumentError, match=r"\] host = "), open_port(DashboardAddress(0, host)):
            pass


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "jinja2"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    install = rf'{package} is not installed: pip install "use-spark\[dashboard\]"'
    with pytest.raises(MissingPackageError, match=install), open_port(DashboardAddress(0)):
        pass


@pytest.mark.parametrize(
    ("header", "is_ours"),
    [
        ("127.0.0.1:8765", True),
        ("localhost", True),
        ("LOCALHOST:9", True),
        ("[::1]:8765", True),
        ("10.1.2.3:8765", True),
        ("lake.example:80", True),
        ("rebound.example:8765", False),
        ("127.0.0.1.rebound.example", False),
        ("", False),
        ("[localhost", False),
    ],
)
def test_only_addresses_and_its_own_name_are_hosts(header, is_ours):
    assert Access("token", "lake.example").is_host(header) == is_ours


def test_the_cookie_follows_from_the_token_and_does_not_contain_it():
    access = Access("secret")
    assert access.is_token("secret")
    assert not any(access.is_token(text) for text in ("", "secre", "secret ", access.cookie, "sécret"))
    assert access.is_cookie(Access("secret", port=1).cookie)
    assert not any(access.is_cookie(text) for text in ("", "secret", Access("other").cookie))
    assert "secret" not in access.cookie
    assert not Access(None).is_token("")
