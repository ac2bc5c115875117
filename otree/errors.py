"""The error raised when text of the index format cannot be read."""


class IndexFormatError(ValueError):
    """Raised when a tag, property or JSON text does not follow the index format.

    The message always names the field and its value.
    """

    @classmethod
    def of_field(cls, field: str, value: object, expected: str) -> "IndexFormatError":
        """Build the error for one field.

        Args:
            field: Name of the field as it is spelled in the format.
            value: The invalid value.
            expected: The kind of value that the format requires, e.g. "a whole number".

        Returns:
            The error, ready to be raised.
        """
        shown = repr(value)
        if len(shown) > 200:
            shown = shown[:200] + "…"
        return cls(f"Cannot read the index format: field '{field}' is {shown}, expected {expected}")

    @classmethod
    def of_property(cls, key: str, reason: str) -> "IndexFormatError":
        """Build the error for a table property that an operation needs.

        Args:
            key: Key of the property.
            reason: Why it cannot be used.

        Returns:
            The error, ready to be raised.
        """
        return cls(f"{reason} (table property '{key}'). Restore the property, or remove the index: use.drop_index.")
