"""`ti.nn`: small neural networks, and optimisers over fields."""

from tinote.kit.nn import MLP, Batched, Dense
from tinote.kit.optimisers import LBFGS, SGD, Adam

__all__ = ["LBFGS", "MLP", "SGD", "Adam", "Batched", "Dense"]
