"""Typed Python access to the JVM: sessions, and the classes of the shim."""
