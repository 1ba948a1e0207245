"""One chat model behind a cache: `CachedChatModel`."""
