"""Right hits against wrong ones, pair by pair: our verifier, its parts, cosine and peers."""
