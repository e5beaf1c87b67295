"""What runs without a model server: an evaluator and an answerer that quotes."""
