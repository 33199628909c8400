"""Python code around a kernel: names, functions, and their side effects."""
