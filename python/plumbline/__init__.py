"""Plumbline for Python: the adapter through which `plumbline check` talks to your own loss functions."""
