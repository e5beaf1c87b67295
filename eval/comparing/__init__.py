"""Systems run on the same questions, and what may be said of the difference."""
