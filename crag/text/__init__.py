"""Text cut and counted: sentences, terms, numbers, tokens."""
