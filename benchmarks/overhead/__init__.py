"""What a cache costs an application besides the framework's own work (``python -m benchmarks.overhead``)."""
