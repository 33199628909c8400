"""What a user types: fields, vectors, kernels, functions, maths, and differentiation (`ad/`)."""
