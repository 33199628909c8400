"""Live views of simulations."""
