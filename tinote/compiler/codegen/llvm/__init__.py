"""The LLVM back end: from IR to LLVM text."""
