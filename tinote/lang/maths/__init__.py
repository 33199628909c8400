"""The functions of the language, in kernels and in Python scope; linear algebra; algorithms. Derivatives, of
numbers in Python too, are in `autodiff/derivative_rules.py`.
"""
