"""The Redis store: one truth for many processes and machines (ADR 0026).

`stampcache.stores.redis.store.RedisStore` is what a ``redis://`` URL opens. It needs the extra ``redis``.
"""
