"""Levels of fragmentation: orders of magnitude of a file's or group's row count."""


def level_of(element_count: int) -> int:
    """Return floor(log10(element_count)), exact for every size.

    Args:
        element_count: Number of rows, not negative.

    Returns:
        The level; 0 for no rows.

    Raises:
        ValueError: If the count is negative.
    """
    if element_count < 0:
        raise ValueError(f"A row count cannot be negative, got {element_count}")
    return len(str(element_count)) - 1


def next_level_elements(level: int) -> int:
    """Return the number of rows at which the level above the given one starts."""
    return int(10 ** (level + 1))
