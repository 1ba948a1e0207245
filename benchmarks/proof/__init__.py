"""Whether a promised wrong-hit rate holds as often as it is said to."""
