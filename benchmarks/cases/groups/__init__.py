"""The cases, by the letters of their groups."""
