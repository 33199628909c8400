"""IR to LLVM text."""
