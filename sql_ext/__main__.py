"""``python -m sql_ext`` and ``spark-submit sql_ext/__main__.py``: the same command line as ``use-spark``."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _make_importable() -> None:
    """Puts the parent folder on ``sys.path``: spark-submit runs this file by its path and puts this folder there."""
    if sys.path and Path(sys.path[0]).resolve() == _HERE and (_HERE / "__init__.py").is_file():
        sys.path[0] = str(_HERE.parent)


if __name__ == "__main__":
    _make_importable()
    from sql_ext.commands.command_line import main

    main()
