"""Who does what: the only place that chooses."""
