"""How the site is built from the pages, the docstrings and the declarations.

``python -m sphinx -W -b html docs build/site`` builds it, without a network.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

project = "USE for Spark"
author = "the USE for Spark authors"
copyright = f"{author}. Apache License 2.0"  # noqa: A001  # the name that Sphinx reads
release = importlib.metadata.version("use-spark")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "repository_links",
    "reference_pages",
    "name_breaks",
]
exclude_patterns = ["**/.ipynb_checkpoints"]
smartquotes = False  # names of options stay as they are typed
suppress_warnings = ["myst.header"]  # a page may begin below its first level, as the changelog's parts do

# Anchors as code hosts make them, so that one link serves the site and the Markdown view.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"  # fields of data classes are described once
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes with defaults would be described twice

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"{project} {release}"
html_copy_source = False
html_show_sourcelink = False
