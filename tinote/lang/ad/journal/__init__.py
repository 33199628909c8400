"""What is recorded of a program, and the reverse sweep through it."""
