"""The functions of the language, in kernels and in Python scope; linear algebra; algorithms. The derivatives of
primitives are in `autodiff/derivative_rules.py`, those for numbers in Python in `lang/data/traced_derivatives.py`.
"""
