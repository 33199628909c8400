"""Live views of simulations: particles, pictures, and the charts below them (`simulation.py`)."""
