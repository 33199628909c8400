"""`ti.ad`: tape, gradients and everything else that differentiates programs."""

from tinote.lang.ad.access_rules.violations import Violation
from tinote.lang.ad.checkpoint import Checkpoints, checkpoint
from tinote.lang.ad.checks.gradcheck import gradcheck
from tinote.lang.ad.checks.horizons import HorizonReport, gradient_horizons
from tinote.lang.ad.custom import grad_for, grad_replaced, no_grad
from tinote.lang.ad.find_nan import Finding, NanReport, find_nan
from tinote.lang.ad.frameworks.jax_function import jax_function
from tinote.lang.ad.frameworks.torch_function import torch_function
from tinote.lang.ad.functional.functional import grad, hvp, jacobian, jvp, value_and_grad, value_and_grad_and_hvp, vjp
from tinote.lang.ad.functional.fwd_mode import FwdMode
from tinote.lang.ad.functional.scipy_problem import ScipyProblem, scipy_problem
from tinote.lang.ad.functional.vmap import vmap
from tinote.lang.ad.solvers.implicit import implicit
from tinote.lang.ad.sweep_report import SweepReport, sweep_report
from tinote.lang.ad.tape import Tape, clear_all_gradients

__all__ = [
    "Checkpoints",
    "Finding",
    "FwdMode",
    "HorizonReport",
    "NanReport",
    "ScipyProblem",
    "SweepReport",
    "Tape",
    "Violation",
    "checkpoint",
    "clear_all_gradients",
    "find_nan",
    "grad",
    "grad_for",
    "grad_replaced",
    "gradcheck",
    "gradient_horizons",
    "hvp",
    "implicit",
    "jacobian",
    "jax_function",
    "jvp",
    "no_grad",
    "scipy_problem",
    "sweep_report",
    "torch_function",
    "value_and_grad",
    "value_and_grad_and_hvp",
    "vjp",
    "vmap",
]
