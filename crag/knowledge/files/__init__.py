"""Bytes → documents → passages."""
