"""Labels of one's own turned into thresholds."""
