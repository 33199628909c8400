"""The kit: what simulations need again and again, written as kernels and functions of the language itself.

Everything here uses tinote as a user's program does. So it runs on CPU threads and lanes and on a GPU, is captured,
saved in pages, and differentiated like any program, and it may be read and changed.
"""
