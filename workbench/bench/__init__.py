"""Measurements of the product, as programs. Each compares two things in one run, since machines differ and drift."""
