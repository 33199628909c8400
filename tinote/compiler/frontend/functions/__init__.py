"""Functions: their bodies, what they return, what a call leads to, and recursion."""
