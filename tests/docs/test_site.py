"""The site builds without warnings and asks no other host for anything; commands in the pages exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pages import ROOT, blocks, pages

sys.path.insert(0, str(ROOT / "docs"))
import name_breaks
import reference_pages
import repository_links

# What a browser fetches by itself when it shows a page.
FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source|image)\b[^>]*?(?:src|href)=[\"'](?:https?:)?//[^>]*>", re.IGNORECASE
)
FETCHED_BY_STYLE = re.compile(r"(?:url\(|@import\s+(?:url\()?)\s*[\"']?(?:https?:)?//[^\s)]*", re.IGNORECASE)


@pytest.mark.slow
def test_site_builds_and_is_complete_by_itself(tmp_path):
    site = tmp_path / "site"
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            "-d",
            str(tmp_path / "trees"),
            "docs",
            site,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    written = {file.relative_to(site).with_suffix("").as_posix() for file in site.rglob("*.html")}
    sources = {
        Path(page).relative_to("docs").with_suffix("").as_posix() for page in pages() if page.startswith("docs/")
    }
    assert sources <= written
    for file in site.rglob("*.html"):
        assert not FETCHED.findall(file.read_text(encoding="utf-8")), file
    for file in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        assert not FETCHED_BY_STYLE.findall(file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_files_and_headings(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"(?s)^```.*?^```", "", text, flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in _anchors(file), f"{page}: {target}"


def _title(page):
    """The first heading of a page, which the site shows in its navigation too."""
    text = (ROOT / page).read_text(encoding="utf-8")
    included = re.search(r"^```\{include\} \.\./(\w+\.md)$", text, flags=re.MULTILINE)
    heading = re.search(r"^# (.*)$", text, flags=re.MULTILINE)
    return heading[1] if heading else _title(included[1])


def _navigation(folder="docs", page="index.md"):
    """The pages of the site's navigation, in order."""
    listed = []
    for block in re.findall(
        r"^```\{toctree\}\n(.*?)^```", (ROOT / folder / page).read_text(), re.DOTALL | re.MULTILINE
    ):
        for name in [line for line in block.splitlines() if line and not line.startswith(":")]:
            assert "<" not in name, f"{name}: the navigation shows the heading of a page"
            names = sorted(file.stem for file in (ROOT / folder).glob(f"{name}.md")) if "*" in name else [name]
            listed += [f"{folder}/{name}.md" for name in names]
    return listed


def test_every_page_is_in_the_navigation_once():
    listed = _navigation() + [page for page in _navigation("docs/decisions") if not page.endswith("/index.md")]
    below_docs = [page for page in pages() if page.startswith("docs/") and page != "docs/index.md"]
    assert sorted(listed) == sorted(below_docs)


def test_a_page_has_one_name():
    titles = [_title(page) for page in _navigation()]
    assert len(set(titles)) == len(titles)
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for words, target in re.findall(r"(?<!!)\[([^\]]+)\]\(([^)#]+\.md)\)", text):
        page = "docs/readme.md" if target == "../README.md" else f"docs/{target}"
        assert words == _title(page)


def _anchors(file):
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(page):
    """Every ``use-spark …`` of the page's blocks of shell, as the words after it."""
    for block in blocks(page):
        text = ""
        for line in block.code.replace("\\\n", " ").splitlines() if block.language == "sh" else ():
            text += line + "\n"
            try:
                # A shell starts a program at the beginning of a line, and after what separates commands.
                lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
                lexer.whitespace_split = True
                found = [*lexer, ";"]
            except ValueError:
                continue  # a text in quotes goes on in the next line
            text, words = "", []
            for word in found:
                if not set(word) <= set("();<>|&"):
                    words.append(word)
                    continue
                if words[:1] == [reference_pages.COMMAND]:
                    yield pytest.param(words[1:], id=f"{block.page}: {' '.join(words)}")
                words = [""] if set(word) <= set("<>") else []
        assert not text, f"{block.place}: a quotation does not end"


@pytest.mark.parametrize("words", [command for page in pages() for command in _commands(page)])
def test_commands_are_accepted(words):
    group = reference_pages.command_group()
    try:
        if words and not words[0].startswith("-"):
            context = click.Context(group, info_name=reference_pages.COMMAND)
            name, command, rest = group.resolve_command(context, list(words))
            command.make_context(name, rest, parent=context).close()
        else:
            group.make_context(reference_pages.COMMAND, list(words)).close()
    except click.exceptions.Exit:
        pass  # --help and --version are answered while they are parsed
    except click.UsageError as error:
        pytest.fail(f"use-spark {' '.join(words)}: {error.format_message()}")


@pytest.mark.parametrize(
    ("text", "at_root", "expected"),
    [
        ("[a](docs/sql.md#x)", True, "[a](/sql.md#x)"),
        ("![a](docs/pictures/a.svg)", True, "![a](/pictures/a.svg)"),
        ("[a](CONTRIBUTING.md)", True, "[a](/contributing.md)"),
        ("[a](../README.md#try-it)", False, "[a](/readme.md#try-it)"),
        ("[a](../../CHANGELOG.md)", False, "[a](/changelog.md)"),
        ("[a](sql.md) [b](../sql.md)", False, "[a](sql.md) [b](../sql.md)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(text, at_root, expected):
    assert repository_links.to_site(text, at_root) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<td>{use.cubeSize}</td>", "<td>{use.<wbr>cube<wbr>Size}</td>"),
        ("<td>\n<p>{a_b}, {CAST}</p></td>", "<td>\n<p>{a_<wbr>b}, {CAST}</p></td>"),
        ("<td>a_b {&lt;table&gt;}</td>", "<td>a_b {&lt;table&gt;}</td>"),
        ("<p>{a_b}</p>", "<p>{a_b}</p>"),
    ],
)
def test_names_in_tables_wrap_between_their_words(html, expected):
    def written(text):
        return text.replace("{", '<code><span class="pre">').replace("}", "</span></code>")

    assert name_breaks.with_breaks(written(html)) == written(expected)


def test_the_map_of_decisions_names_each_once_by_its_title():
    folder = ROOT / "docs" / "decisions"
    pages = sorted(page for page in folder.glob("[0-9]*.md"))
    titles = {page.name: page.read_text(encoding="utf-8").partition("\n")[0][len("# 000 ") :] for page in pages}
    text = (folder / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[\d+\]\(([^)]+)\) \| (.*) \|$", text, re.MULTILINE)
    assert sorted(listed) == sorted(titles.items())
