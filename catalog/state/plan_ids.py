"""Ids of stored plans, which name folders and files below ``_use/``; without Spark."""

from __future__ import annotations

import re

_ID = re.compile(r"[0-9a-f]{12}")


def is_plan_id(text: str) -> bool:
    """Whether a text can be the id of a plan; another one may be a path out of the table."""
    return _ID.fullmatch(text) is not None
