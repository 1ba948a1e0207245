"""Embedders known by name, and those of the frameworks; each loads its library when it is used."""
