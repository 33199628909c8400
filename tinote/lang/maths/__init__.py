"""The functions of the language, in kernels and in Python scope; linear algebra; algorithms. Derivatives, of
numbers in Python too, are in `ir/primitives.py`.
"""
