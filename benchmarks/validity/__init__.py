"""Validity: how often caches serve what the application would not answer now (see `__main__`)."""
