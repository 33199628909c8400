"""Data: fields, arrays, layouts, vectors, matrices, structs, and their types."""
