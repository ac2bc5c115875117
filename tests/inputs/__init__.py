"""Random inputs from outside: every reader ends in a value or in an error of the project with a code."""
