"""The intermediate representation: types, operations, builder, rewriter, analyses, verifier, text form and interpreter.

Imports nothing above the ground floor.
"""
