"""Serialisation of kernels, device functions, structs and fields for other processes.

What an importable module defines is pickled as a reference, as functions are; what a notebook or a script defines goes
by value with cloudpickle: a kernel as its function with its source and all that it names, a field as its declaration
with its contents. The classes say themselves what they are made of (`__reduce_ex__`); here is what they share.
"""
