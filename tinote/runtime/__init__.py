"""What runs: memory, just-in-time linking, threads, launches and their faults. Knows nothing of the IR."""
