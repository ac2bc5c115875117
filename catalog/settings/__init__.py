"""What a setting is, and the settings of a session."""
