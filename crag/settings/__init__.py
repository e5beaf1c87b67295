"""Everything that can be set, and what is said of what cannot be read."""
