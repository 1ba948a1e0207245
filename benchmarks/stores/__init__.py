"""What a store costs, alone and shared by processes, and whether it ever serves what it must not."""
