"""Pages of the site in a browser: none is wider than a phone or a screen, and pictures stay readable."""

import html
import json
import re
import shutil
import subprocess
import sys

import pytest
from pages import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

# Loads each page in a frame, and writes down how wide it is, how large the letters of its pictures are, and how much
# its tables hide.
HARNESS = """<pre id="found"></pre><script>
(async () => {
  const found = [];
  for (const page of %s) {
    const frame = document.createElement('iframe');
    frame.style.width = '%dpx';
    frame.src = page;
    document.body.appendChild(frame);
    await new Promise(loaded => frame.onload = loaded);
    const scale = [...frame.contentDocument.images].filter(image => image.src.endsWith('.svg') && image.naturalWidth)
      .map(image => image.getBoundingClientRect().width / image.naturalWidth);
    const tables = [...frame.contentDocument.querySelectorAll('.table-wrapper')];
    const hidden = Math.max(0, ...tables.map(table => table.scrollWidth - table.clientWidth));
    found.push([page, frame.contentDocument.scrollingElement.scrollWidth, Math.min(1, ...scale), hidden]);
    frame.remove();
  }
  document.getElementById('found').textContent = JSON.stringify(found);
})();
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", folder / "trees", "docs", folder / "html"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder / "html"


def _measured(site, width):
    listed = [file for file in site.rglob("*.html") if "_static" not in file.parts]
    harness = site / f"harness{width}.html"
    harness.write_text(HARNESS % (json.dumps([file.as_uri() for file in listed]), width))
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files")
    shown = subprocess.run(
        [CHROMIUM, *flags, f"--window-size={width + 50},900", "--virtual-time-budget=600000", "--dump-dom", harness],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown.stdout)[1]))
    assert len(found) == len(listed) > 100
    return found


@pytest.mark.parametrize("width", [390, 1300])
def test_no_page_scrolls_sideways(site, width):
    assert [(page, wide) for page, wide, *_ in _measured(site, width) if wide > width] == []


def test_letters_of_pictures_are_readable_on_a_phone(site):
    """A picture has letters of 12 pixels or more, and is scaled down to the width of the page."""
    assert [(page, scale) for page, _, scale, _ in _measured(site, 390) if scale * 12 < 8] == []


def test_no_table_hides_a_column_on_a_screen(site):
    tables_of_figures = ("/ingestion.html", "/decisions/068-clustering-follows-the-commits.html")
    hidden = [(page, pixels) for page, _, _, pixels in _measured(site, 1300) if pixels]
    assert [page for page in hidden if not page[0].endswith(tables_of_figures)] == []
