"""The dashboard in headless Chromium: on a phone, in light and dark mode, and while it refreshes itself."""

import html
import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace
from urllib.parse import quote

import pytest
from fake_clock import FakeClock
from fleet_fakes import EVIL, NOW, PLAN, fleet_of, table_of
from starlette.responses import HTMLResponse

from sql_ext.dashboard.address import DashboardAddress, open_port
from sql_ext.dashboard.pages import Pages
from sql_ext.dashboard.server import served
from sql_ext.dashboard.web_application import web_application

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

TABLE = f"/table?plan=1&name={quote(EVIL)}"
FLEET = "/?refresh=off"
# Loads a page in a frame, does something in it, and writes down what it finds.
_HARNESS = """<pre id="found"></pre><iframe id="frame" style="border:0;width:%dpx;height:4000px" src="%s"></iframe>
<script>
const found = {};
const frame = document.getElementById("frame");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
frame.onload = async () => {
  frame.onload = null;
  const page = frame.contentDocument, view = frame.contentWindow;
  %s
  document.getElementById("found").textContent = JSON.stringify(found);
};
</script>"""
_MEASURE = """
found.width = page.scrollingElement.scrollWidth;
found.background = view.getComputedStyle(page.body).backgroundColor;
found.ids = [...page.querySelectorAll("[id]")].map((e) => e.id);
found.headings = [...page.querySelectorAll("h1, h2, h3")].map((e) => Number(e.tagName[1]));
found.landmarks = [...page.querySelectorAll("header, main, footer")].map((e) => e.tagName);
found.tables = [...page.querySelectorAll("table")].map((t) => Boolean(t.caption) && [...t.rows].every(
  (row) => [...row.querySelectorAll("th")].every((e) => ["row", "col"].includes(e.scope)) && row.querySelector("th")));
const named = "a, button, svg, input:not([type=hidden]), select, progress, [role=region]";
found.unnamed = [...page.querySelectorAll(named)].filter((e) => !(
  e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length)
  || page.getElementById(e.getAttribute("aria-labelledby")))).map((e) => e.outerHTML);
found.svgs = [...page.querySelectorAll("svg text")].map((e) => 12 * Math.hypot(e.getScreenCTM().a, e.getScreenCTM().b));
const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
const light = (color) => rgb(color).slice(0, 3).map((c) => c / 255)
  .map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
  .reduce((sum, c, n) => sum + c * [.2126, .7152, .0722][n], 0);
const behind = (e) => { const c = view.getComputedStyle(e).backgroundColor;
  return rgb(c)[3] === 0 ? behind(e.parentElement) : c; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + .05) / (y + .05); };
found.faint = [...page.querySelectorAll("body *")].filter((e) => !e.closest("svg, script, option, noscript")
  && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
  .filter((e) => ratio(view.getComputedStyle(e).color, behind(e)) < 4.5).map((e) => e.outerHTML.slice(0, 80));
"""
_REFRESH = """
const link = page.querySelector("#by-health");
link.focus();
page.getElementById("samples").open = true;
found.before = page.querySelector("time").textContent;
await wait(1500);
found.after = page.querySelector("time").textContent;
found.focus = page.activeElement.id;
found.isNew = page.activeElement !== link;
found.isOpen = page.getElementById("samples").open;
page.querySelector("input[type=search]").value = "typed";
const typing = page.querySelector("time").textContent;
await wait(2500);
found.typed = page.querySelector("input[type=search]").value;
found.kept = page.querySelector("time").textContent === typing;
"""


@pytest.fixture(scope="module")
def data():
    return fleet_of(10_000)


class Tables:
    def get(self, name, with_plan, seconds):
        return table_of(name, plan=PLAN if with_plan else None)


def _framed(web):
    """The application, which lets pages of itself show it in a frame, and such a page at ``/harness``."""

    async def framed(scope, receive, send):
        async def send_framed(message):
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name != b"x-frame-options"]
                headers = [(name, value.replace(b"ancestors 'none'", b"ancestors 'self'")) for name, value in headers]
                message = {**message, "headers": headers}
            await send(message)

        if scope["path"] == "/harness":
            await HTMLResponse(framed.harness)(scope, receive, send)
        else:
            await web(scope, receive, send_framed)

    framed.harness = ""
    return framed


@pytest.fixture
def site(data):
    times = itertools.count(NOW, 1000)
    clock = FakeClock(NOW)

    def newest():
        return replace(data, gathered_at=next(times))

    with open_port(DashboardAddress(0, auth="none")) as port:
        framed = _framed(web_application(newest, Tables(), Pages(1), port.access, clock))
        with served(framed, port):
            yield framed, port.url.rstrip("/")


def _chromium(*arguments):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=120, text=True)


def _result_of(site, path, width, script, *options):
    framed, url = site
    framed.harness = _HARNESS % (width, path, script)
    size = f"--window-size={width + 200},4200"
    shown = _chromium(*options, size, "--virtual-time-budget=20000", "--dump-dom", f"{url}/harness")
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, re.DOTALL)[1]))


@pytest.mark.parametrize("path", [FLEET, TABLE, "/?order=x", "/table?name=x"])
@pytest.mark.parametrize(("width", "options"), [(360, []), (1280, []), (1280, ["--force-dark-mode"])])
def test_pages_fit_and_are_accessible(site, path, width, options):
    found = _result_of(site, path, width, _MEASURE, *options)
    assert found["width"] == width
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["headings"][0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(found["headings"]))
    assert found["landmarks"] == ["HEADER", "MAIN", "FOOTER"]
    assert all(found["tables"])
    assert found["unnamed"] == []
    assert min(found["svgs"], default=12) >= 8
    assert found["faint"] == []
    paper = [int(part) for part in re.findall(r"\d+", found["background"])]
    assert (max(paper) < 60) == bool(options)


def test_a_refresh_keeps_the_place_of_the_reader(site):
    found = _result_of(site, "/", 1280, _REFRESH)
    assert found["before"] < found["after"]
    assert (found["focus"], found["isNew"], found["isOpen"]) == ("by-health", True, True)
    assert (found["typed"], found["kept"]) == ("typed", True)


def test_a_lost_connection_is_said_once_and_the_data_stays(site):
    script = """
    view.fetch = () => Promise.reject(new Error("gone"));
    await wait(2500);
    found.said = page.getElementById("connection").textContent;
    found.rows = page.querySelectorAll("#tables ~ .wide tbody tr").length;
    """
    found = _result_of(site, "/", 1280, script)
    assert "does not answer" in found["said"]
    assert found["rows"] == 50


@pytest.mark.parametrize("path", ["/?search=alert", TABLE])
def test_the_browser_refuses_nothing_of_the_page(site, path):
    _, url = site
    shown = _chromium("--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom", f"{url}{path}")
    console = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    assert "alert(" in shown.stdout
    assert 'style="' not in shown.stdout
