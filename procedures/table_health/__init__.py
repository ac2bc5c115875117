"""How healthy a table is: what its state costs reads, in comparison with a fresh one."""
