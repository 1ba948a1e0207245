"""What a cache costs an application beside the framework (``python -m benchmarks.overhead``)."""
