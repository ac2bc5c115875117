"""The state of this process: procedures, strategies, runs, services and notifications."""
