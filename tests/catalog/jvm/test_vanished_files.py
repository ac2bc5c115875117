"""Files that are deleted between listing and reading are listed again."""

import pytest
from pyspark.errors import PySparkException

from catalog.jvm.vanished_files import read_again


class Failed(PySparkException):
    def __init__(self, condition):
        super().__init__(message="a file is gone")
        self.condition = condition

    def getCondition(self):  # noqa: N802 - as PySpark names it
        return self.condition

    def getSqlState(self):  # noqa: N802 - as PySpark names it
        return None


def read_of(*outcomes):
    rest = iter(outcomes)

    def read():
        outcome = next(rest)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return read


@pytest.mark.parametrize("condition", ["FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND"])
def test_a_folder_is_listed_again(condition):
    assert read_again(read_of(Failed(condition), Failed(condition), 7)) == 7
    with pytest.raises(Failed):
        read_again(read_of(Failed(condition), Failed(condition), Failed(condition), 7))


def test_other_errors_are_raised():
    with pytest.raises(Failed):
        read_again(read_of(Failed("FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER"), 7))
