"""Code generators: from IR to LLVM, WGSL and Python."""
