"""Measuring and fitting: what runs beside the product, never inside an answer."""
