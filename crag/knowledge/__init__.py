"""Documents in, documents out: loading, splitting, embedding, storing, searching."""
