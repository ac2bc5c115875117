"""Tables as Python objects: the public facade over the procedures and virtual tables."""
