"""`ti.ad`: tape, gradients and everything else that differentiates programs."""

from tinote.lang.ad.custom import grad_for, grad_replaced, no_grad
from tinote.lang.ad.forward_mode import FwdMode
from tinote.lang.ad.tape import Tape, clear_all_gradients

__all__ = ["FwdMode", "Tape", "clear_all_gradients", "grad_for", "grad_replaced", "no_grad"]
