"""Requests to the application: who gets an answer, and what is in it. No Spark, no port."""

import re

import pytest
from asgi_client import AsgiClient
from fake_clock import FakeClock
from fleet_fakes import EVIL, NOW, PLAN, fleet_of, table_of

from catalog.errors import TableError
from sql_ext.dashboard import guard
from sql_ext.dashboard.address import Access
from sql_ext.dashboard.pages import Pages
from sql_ext.dashboard.table_requests import NoAnswerError
from sql_ext.dashboard.web_application import web_application

TOKEN = "a-token-of-the-tests"


class Tables:
    """Answers for one table after the other with an error, or with fake data; remembers what it was asked for."""

    def __init__(self, *errors):
        self.errors, self.asked = list(errors), []

    def get(self, name, with_plan, seconds):
        self.asked.append((name, with_plan, seconds))
        if self.errors:
            raise self.errors.pop(0)
        return table_of(name, plan=PLAN if with_plan else None)


@pytest.fixture(scope="module")
def data():
    return fleet_of(120)


@pytest.fixture
def tables():
    return Tables()


@pytest.fixture
def stranger(data, tables):
    app = web_application(lambda: data, tables, Pages(10), Access(TOKEN), FakeClock(NOW + 1000))
    return AsgiClient(app)


@pytest.fixture
def client(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    assert answer.status_code == 303
    return stranger


# ------------------------------------------------------------------------------------------------------------- access


@pytest.mark.parametrize("path", ["/", "/fragment", "/table?name=x", "/nothing", "/?token=wrong", "/?token="])
def test_without_the_token_there_is_only_the_sign_in(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert "spark_catalog" not in answer.text
    assert '<form action="sign-in" method="post">' in answer.text
    assert ("is not that of" in answer.text) == ("token=" in path)


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger):
    answer = stranger.get(f"/table?name=a%20b&token={TOKEN}&plan=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/table?name=a+b&plan=1")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("use-dashboard-8765=")
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert stranger.get("/").status_code == 200
    # A wrong token is refused although the cookie is right.
    assert stranger.get("/?token=wrong").status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/", "/%5Cevil.example", "///evil.example"])
def test_the_redirect_stays_on_this_host(stranger, path):
    place = stranger.get(f"{path}?token={TOKEN}").headers["location"]
    assert re.match(r"/[^/\\]", place)


def test_the_form_signs_in(stranger):
    refused = stranger.post("/sign-in", data={"token": "wrong"})
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers
    assert stranger.post("/sign-in", content=b"x" * 5000).status_code == 413
    assert stranger.post("/sign-in", content=b"\xff\x00").status_code == 401
    answer = stranger.post("/sign-in", data={"token": f" {TOKEN} "})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert stranger.get("/").status_code == 200


def test_a_form_that_does_not_arrive_is_given_up(stranger, monkeypatch):
    monkeypatch.setattr(guard, "_FORM_SECONDS", 0.01)
    answer = stranger.post("/sign-in", content=b"token=", is_complete=False)
    assert (answer.status_code, answer.headers["connection"]) == (408, "close")


@pytest.mark.parametrize(
    "cookie", ["", "use-dashboard-8765=", f"use-dashboard-8765={TOKEN}", 'a="', "use-dashboard-1=x"]
)
def test_other_cookies_open_nothing(stranger, cookie):
    assert stranger.get("/", headers={"cookie": cookie}).status_code == 401


@pytest.mark.parametrize("host", ["rebound.example:8765", ""])
def test_another_host_is_refused_whatever_it_sends(client, host):
    for path in ("/", f"/?token={TOKEN}", "/static/style.css"):
        assert client.get(path, headers={"host": host}).status_code == 403


@pytest.mark.parametrize("query", [b"\xff", b"token=\xed\xa0\x80", "name=é".encode()])
def test_a_query_that_no_browser_sends_is_refused(stranger, query):
    """The server decodes it, and would log the stack of the error."""
    answer = stranger.request("GET", "/", raw_query=query)
    assert (answer.status_code, "not accepted" in answer.text) == (400, True)


@pytest.mark.parametrize("host", ["127.0.0.1:]", "[::1]:[", "127.0.0.1:x", "[::1"])
def test_a_malformed_host_is_answered(stranger, host):
    assert stranger.get("/", headers={"host": host}).status_code in (401, 403)


def test_another_site_may_lead_here_and_read_nothing(client, tables):
    elsewhere = {"sec-fetch-site": "cross-site"}
    assert client.get("/", headers={**elsewhere, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get("/", headers={**elsewhere, "sec-fetch-mode": "navigate"}).status_code == 200
    client.get("/table", params={"name": EVIL, "plan": 1}, headers={**elsewhere, "sec-fetch-mode": "navigate"})
    assert tables.asked == [(EVIL, False, 20.0)]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(client, method):
    assert client.request(method, "/").status_code == 405


def test_without_authentication_no_token_is_needed(data, tables):
    app = web_application(lambda: data, tables, Pages(10), Access(None), FakeClock(NOW))
    client = AsgiClient(app)
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"host": "rebound.example"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/fragment", "/nothing", "/?page=x", f"/?token={TOKEN}", "/static/refresh.js"])
def test_every_answer_has_the_headers(client, path):
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {name for name, value in policy.items() if value not in ("'self'", "'none'")} == set()
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


# -------------------------------------------------------------------------------------------------------------- pages


def _pages(client):
    query = {"name": EVIL, "plan": 1}
    return {
        "fleet": client.get("/").text,
        "found": client.get("/", params={"search": "<script>", "state": "<b>", "order": "table"}).text,
        "table": client.get("/table", params=query).text,
        "missing table": client.get("/table", params={"name": "<script>"}).text,
        "bad order": client.get("/", params={"order": "<script>"}).text,
        "missing page": client.get("/<script>").text,
        "sign in": client.get("/", params={"token": "<script>"}).text,
    }


def test_texts_are_escaped_and_pages_need_nothing_from_elsewhere(client):
    for name, text in _pages(client).items():
        tags = re.findall(r"<\s*(\w+)([^>]*)>", text)
        scripts = [attributes for tag, attributes in tags if tag == "script"]
        assert scripts in ([], [' src="static/refresh.js" defer']), name
        assert {tag for tag, _ in tags} & {"b", "i", "u", "img", "t", "style", "iframe"} == set(), name
        for _, attributes in tags:
            assert not re.search(r"\son\w+\s*=|\sstyle\s*=", attributes), (name, attributes)
            for place in re.findall(r"(?:src|href|action)=\"([^\"]*)\"", attributes):
                assert not re.match(r"\w+:|//", place), (name, place)
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&#34;quoted&#34;" in _pages(client)["table"]


def test_a_link_to_a_table_leads_to_its_page(client, tables):
    link = re.search(r'href="(table\?name=lake[^"]*)"', client.get("/?search=alert").text)[1]
    text = client.get(f"/{link}").text
    assert tables.asked[-1] == (EVIL, False, 20.0)
    for part in (
        "36 of 36 cubes",
        "USE_SPARK_FAILED: &lt;img",
        "Plan the next run",
        "use.optimize(&#39;&lt;t&gt;&#39;)",
    ):
        assert part in text
    assert "120 files" not in text
    planned = client.get(f"/{link}&plan=1").text
    assert tables.asked[-1] == (EVIL, True, 90.0)
    assert "120 files &lt;u&gt;" in planned


def test_the_fleet_shows_what_runs_waits_is_spent_and_saved(client, data):
    text = client.get("/").text
    assert len(data.runs) == 2
    for part in (
        "group 3 of 8: rewriting 12 files",
        "1.3 GB of 3.4 GB",
        "38 %",
        "BUDGET_USED_UP",
        f"<strong>{dict(data.waiting_reasons)['waits for its turn']}</strong> waits for its turn",
        "100.0 MB",
        "Numbers by day",
        "The health of 40 of 120 tables",
        "use_service_runs_total completed",
        "Tables 1 to 50 of 120",
        "Page 1 of 3",
    ):
        assert part in text


def test_a_fragment_is_the_content_of_the_page(client):
    whole, part = client.get("/?search=shop&page=1").text, client.get("/fragment?search=shop&page=1").text
    assert part in whole
    assert "<html" not in part


def test_without_script_the_page_reloads_itself_unless_it_is_paused(client):
    reload = '<noscript><meta http-equiv="refresh" content="30"></noscript>'
    assert reload in client.get("/").text
    paused = client.get("/?refresh=off").text
    assert reload not in paused
    assert 'data-refresh="off"' in paused
    assert "refresh=off" in re.search(r'id="next-page" rel="next" href="([^"]*)"', paused)[1]


def test_a_wrong_address_is_explained(client, tables):
    answer = client.get("/?order=color")
    assert answer.status_code == 400
    assert "order = &#39;color&#39; is not accepted: one of rank, table" in answer.text
    unknown = client.get("/table?name=delta.%60/etc%60")
    assert unknown.status_code == 404
    assert tables.asked == []
    assert client.get("/nothing").status_code == 404


def test_a_failing_and_a_slow_table_have_a_page_that_says_so(client, tables):
    tables.errors += [
        TableError.missing(EVIL, "it is <gone>", None), NoAnswerError("no answer within 20 seconds"), ValueError("<x>")
    ]  # fmt: skip
    answers = [client.get("/table", params={"name": EVIL}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [502, 503, 502]
    assert "USE_TABLE_NOT_FOUND" in answers[0].text
    assert "no answer within 20 seconds" in answers[1].text
    assert "<x>" not in answers[2].text
    assert client.get("/").status_code == 200


def test_old_data_is_marked(data):
    clock = FakeClock(NOW + 31_000)
    app = web_application(lambda: data, Tables(), Pages(10), Access(None), clock)
    client = AsgiClient(app)
    assert "the data is 31 s old" in client.get("/").text
    clock.go_on(-1000)
    assert "Not up to date" not in client.get("/").text
