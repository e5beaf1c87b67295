"""The graphs: each variant of corrective RAG is one file, one screen of constants and wiring."""
