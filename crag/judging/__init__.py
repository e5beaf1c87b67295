"""The judgements: relevance, queries, refinement, the answer, its grounding, the route."""
