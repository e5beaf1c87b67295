"""Threads and event loops: blocking work beside them, what is made once, what belongs to a loop."""
