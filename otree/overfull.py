"""Overfull cubes: which cubes hold far more rows than desired, and can be relieved by writing them anew."""

# A cube of more than this multiple of the desired rows is overfull.
OVERFULL_FACTOR = 2
# One write puts more rows than desired into a cube only where equal weights cannot be told apart. Writing the cube
# again helps if at least this share of its rows comes from other writes.
_SHARE_OF_OTHER_WRITES = 0.25


def is_overfull(element_count: int, desired: int) -> bool:
    """Say whether a cube holds more than twice the desired rows.

    Args:
        element_count: Rows of all live blocks of the cube.
        desired: Rows that an inner cube should hold.
    """
    return element_count > OVERFULL_FACTOR * desired


def has_rows_of_others(element_count: int, largest_write: int) -> bool:
    """Say whether a quarter or more of some rows come from writes other than the largest.

    Args:
        element_count: Rows of a cube in some files.
        largest_write: Those among them of the write that has the most.
    """
    return element_count - largest_write >= _SHARE_OF_OTHER_WRITES * element_count


def can_be_split(element_count: int, largest_write: int, desired: int) -> bool:
    """Say whether a cube is overfull and one rewrite of its files is expected to relieve it.

    After a rewrite of all its files, all rows of a cube come from one write. So this is never true twice for the same
    rows, even where they cannot be split. A rewrite of some of its files needs ``has_rows_of_others`` of these, too.

    Args:
        element_count: Rows of all live blocks of the cube.
        largest_write: Rows of the cube in the files of the write that has the most of them.
        desired: Rows that an inner cube should hold.
    """
    return is_overfull(element_count, desired) and has_rows_of_others(element_count, largest_write)
