"""What a watched write costs, and what it misses in approximate indexes."""
