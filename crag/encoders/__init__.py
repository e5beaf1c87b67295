"""Vectors made on this machine, by encoders that come as packages."""
