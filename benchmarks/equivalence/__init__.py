"""How well a language model judges whether two questions are the same."""
