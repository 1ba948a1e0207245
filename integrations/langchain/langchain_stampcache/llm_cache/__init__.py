"""The cache that LangChain asks before each model: `StampCache`, and how it finds the question."""
