"""`ti.ad`: tape, gradients and everything else that differentiates programs."""

from tinote.lang.ad.access_rules.violations import Violation
from tinote.lang.ad.checkpoint import Checkpoints, checkpoint
from tinote.lang.ad.checks.gradcheck import gradcheck
from tinote.lang.ad.custom import grad_for, grad_replaced, no_grad
from tinote.lang.ad.find_nan import Finding, NanReport, find_nan
from tinote.lang.ad.functional.forward_mode import FwdMode
from tinote.lang.ad.functional.functional import grad, hvp, jacobian, jvp, value_and_grad, vjp
from tinote.lang.ad.tape import Tape, clear_all_gradients

__all__ = [
    "Checkpoints",
    "Finding",
    "FwdMode",
    "NanReport",
    "Tape",
    "Violation",
    "checkpoint",
    "clear_all_gradients",
    "find_nan",
    "grad",
    "grad_for",
    "grad_replaced",
    "gradcheck",
    "hvp",
    "jacobian",
    "jvp",
    "no_grad",
    "value_and_grad",
    "vjp",
]
