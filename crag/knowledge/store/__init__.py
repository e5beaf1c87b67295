"""The knowledge base: one writer, many readers."""
