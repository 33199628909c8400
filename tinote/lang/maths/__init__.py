"""The functions of the language, in kernels and in Python scope; linear algebra; algorithms."""
