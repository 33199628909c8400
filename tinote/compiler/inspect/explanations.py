"""Explanations of stages, one sentence each. For a step of the pipeline it is the first sentence of its module, for any
other stage its `about`.
"""

from __future__ import annotations

import re
import sys

from tinote.compiler import derivative_steps, pipeline
from tinote.compiler.inspect.kinds import LLVM
from tinote.compiler.inspect.stages import Stage


def explanation(stage: Stage) -> str:
    """The explanation of the step that led to a stage; empty for an LLVM pass without one."""
    if stage.kind is LLVM and stage.group:
        return _OF_LLVM.get(stage.name.partition(" ")[0], "")
    return stage.about or summary(stage.name)


def summary(step: str) -> str:
    """The first sentence of the module that defines a step of the pipeline; empty for any other name."""
    function = getattr(pipeline, step, None) or getattr(derivative_steps, step, None)
    module = sys.modules.get(getattr(function, "__module__", ""))
    paragraph = " ".join(((module and module.__doc__) or "").partition("\n\n")[0].split())
    found = re.match(r".+?[.:](?= [A-Z]|$)", paragraph)
    return re.sub(r":$", ".", found[0]) if found else paragraph


_OF_LLVM = {
    "ADCE": "Aggressive dead code elimination: removes what no effect depends on, assuming all else dead.",
    "AggressiveInstCombine": "Combines patterns of instructions that are too wide for InstCombine.",
    "AlignmentFromAssumptions": "Raises the alignment of loads and stores where assumptions prove it.",
    "AlwaysInliner": "Copies the bodies of functions that are marked so into their callers.",
    "BDCE": "Removes computations of bits that nothing demands.",
    "CallSiteSplitting": "Splits a call under a condition in two, one for each side that knows more of its arguments.",
    "ConstraintElimination": "Removes comparisons that earlier conditions decide.",
    "CorrelatedValuePropagation": "Narrows values and comparisons by the branches that lead to them.",
    "DSE": "Dead store elimination: removes stores that are overwritten before anything reads them.",
    "DeadArgumentElimination": "Removes arguments and results that no one uses.",
    "DivRemPairs": "Brings divisions and remainders of the same operands together.",
    "EarlyCSE": "Common subexpression elimination in one quick walk over the dominator tree.",
    "Float2Int": "Computes in integers what is converted to floats only to be converted back.",
    "GVN": "Global value numbering: removes computations and loads that have been done on every path.",
    "GlobalDCE": "Removes functions and variables that nothing refers to.",
    "GlobalOpt": "Optimises global variables and the linkage of functions.",
    "IPSCCP": "Propagates constants through branches and between functions.",
    "IndVarSimplify": "Brings the induction variables of a loop into a canonical form and computes exit values.",
    "InferAlignment": "Raises the alignment of loads and stores where it can be computed.",
    "InferFunctionAttrs": "Marks library functions with what is known of them.",
    "Inliner": "Copies the bodies of called functions into their callers.",
    "InstCombine": "Replaces small patterns of instructions by cheaper ones.",
    "InstSimplify": "Replaces instructions by values that exist already.",
    "JumpThreading": "Lets a branch whose outcome a predecessor knows jump there directly.",
    "LCSSA": "Gives values that are used after a loop a phi at its exit, as loop passes expect.",
    "LICM": "Loop-invariant code motion: moves what every iteration computes alike before or after the loop.",
    "LibCallsShrinkWrap": "Calls maths functions whose results are not used only where they may report an error.",
    "LoopDeletion": "Removes loops without effects.",
    "LoopDistribute": "Splits a loop so that one part of it can be vectorised.",
    "LoopFullUnroll": "Writes out loops of a small known number of iterations.",
    "LoopIdiomRecognize": "Replaces loops that fill or copy memory, or count bits, by intrinsics.",
    "LoopInstSimplify": "Simplifies the instructions in a loop.",
    "LoopLoadElimination": "Carries a stored value to the next iteration's load in a register.",
    "LoopRotate": "Turns a loop so that it tests its condition at the end.",
    "LoopSimplify": "Gives a loop a preheader, a single latch and exits of its own, as loop passes expect.",
    "LoopSimplifyCFG": "Simplifies the blocks of a loop.",
    "LoopSink": "Moves invariant code into a cold part of the loop.",
    "LoopUnroll": "Repeats the body of a loop so that an iteration does the work of several.",
    "LoopVectorize": "Runs several iterations of an innermost loop at once, one in each lane of a vector.",
    "MemCpyOpt": "Removes and joins copies of memory.",
    "MergedLoadStoreMotion": "Joins the loads and stores of both sides of a branch.",
    "MoveAutoInit": "Moves initialisations closer to their use.",
    "NaryReassociate": "Reuses a sum or product of the same operands that has been computed before.",
    "PostOrderFunctionAttrs": "Infers attributes of functions from their bodies, callees first.",
    "ReversePostOrderFunctionAttrs": "Infers attributes of functions from their callers.",
    "Reassociate": "Orders the operands of sums and products so that constants and invariants meet.",
    "RelLookupTableConverter": "Makes tables of addresses relative.",
    "SCCP": "Propagates constants through branches that they decide.",
    "SLPVectorizer": "Joins like operations of a straight piece of code into vectors.",
    "SROA": "Scalar replacement of aggregates: takes stack slots apart and turns them into SSA values.",
    "SimpleLoopUnswitch": "Moves an invariant condition out of a loop, which is copied for each side of it.",
    "SimplifyCFG": "Merges and removes blocks, turns branches into selections.",
    "SpeculativeExecution": "Moves cheap instructions before the branch that guards them.",
    "TailCallElim": "Turns a function's call of itself at its end into a loop, and marks tail calls.",
    "VectorCombine": "Combines operations on vectors and on their elements by their cost on this machine.",
}
