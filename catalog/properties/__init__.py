"""The table properties of ours: names, types, defaults and checks."""
