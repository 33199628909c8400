"""The run time: memory, just-in-time linking, threads, launches and their faults. It does not depend on the IR."""
