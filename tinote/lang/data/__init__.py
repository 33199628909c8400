"""What holds numbers: fields, arrays, layouts, vectors, matrices, structs, and their types."""
