"""What happens when another package has the name of one of ours."""

import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from sql_ext.installation import PACKAGES, check_packages, other_owners

ROOT = Path(__file__).resolve().parents[2]


def test_packages_beside_sql_ext_are_accepted():
    check_packages(lambda name: PathFinder.find_spec(name, [str(ROOT)]))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_hides_ours_is_named_with_both_places(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    with pytest.raises(ImportError) as refused:
        check_packages(lambda asked: PathFinder.find_spec(asked, [str(tmp_path), str(ROOT)]))
    assert str(tmp_path / name) in str(refused.value)
    assert str(ROOT / name) in str(refused.value)
    assert refused.value.name == name


def test_a_module_file_hides_a_package_too(tmp_path):
    (tmp_path / "catalog.py").touch()
    with pytest.raises(ImportError, match=r"catalog\.py hides"):
        check_packages(lambda asked: PathFinder.find_spec(asked, [str(tmp_path), str(ROOT)]))


def test_a_missing_package_is_named():
    with pytest.raises(ImportError, match=r"otree is missing\. Install use-spark again"):
        check_packages(lambda _: None)


def test_the_check_comes_before_the_imports_that_would_fail(tmp_path):
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "__init__.py").touch()
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import sql_ext"
    run = subprocess.run([sys.executable, "-c", path], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.strip().splitlines()[-1].startswith("ImportError: The package 'catalog' in ")


def test_other_distributions_with_our_names_are_listed():
    installed = {"catalog": ["use-spark", "some-catalog"], "otree": ["use-spark"], "numpy": ["numpy"]}
    assert other_owners(lambda: installed) == {"catalog": ["some-catalog"]}
