"""Linear and nonlinear solvers with derivatives of their own."""
