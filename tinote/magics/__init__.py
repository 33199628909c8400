"""IPython: `%load_ext tinote`, `%%kernel` and the line magics."""
