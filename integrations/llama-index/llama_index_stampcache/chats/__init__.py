"""Chat engines: `CachedChatEngine`."""
