"""Tables as Python objects: one public facade over the procedures and virtual tables that SQL has."""
