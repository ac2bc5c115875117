"""The border to the JVM: sessions, and what the shim offers, as typed Python."""
