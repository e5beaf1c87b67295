"""What everything stands on: seams, state, answer, errors, meters, words. Uses nothing of the rest."""
