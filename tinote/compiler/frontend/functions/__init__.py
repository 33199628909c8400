"""Functions: bodies, results, callees, and recursion."""
