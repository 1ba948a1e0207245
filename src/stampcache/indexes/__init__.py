"""In-process vector search used by stores."""
