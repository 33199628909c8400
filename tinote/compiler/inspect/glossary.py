"""Glossary of the terms in stages, one sentence each, for readers who do not write compilers."""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """`also`: other forms of the word, and the keywords of the IR's text for it."""

    name: str
    sentence: str
    also: tuple[str, ...] = ()


GLOSSARY = (
    Term("adjoint", "The derivative of the loss with respect to a variable or an element of memory.", ("grad",)),
    Term("atomic", "A read, change and write of one element that no other thread can interrupt.", ("atomics",)),
    Term("buffer", "Memory that a kernel reads and writes: the elements of a field, an ndarray or an array argument."),
    Term(
        "canonical",
        "In the one standard form of several with the same meaning, so that later passes need to know only that.",
    ),
    Term(
        "carried value",
        "A value that a loop passes from iteration to iteration: a parameter of its region; yield gives the next.",
        ("carrying", "loop-carried"),
    ),
    Term(
        "check", "Stops the kernel with a located error unless a condition holds: an index in bounds, no zero divisor."
    ),
    Term("constant folding", "Replacing an operation on known numbers by its result.", ("fold", "folds", "folding")),
    Term("CSE", "Common subexpression elimination: computing once what is computed twice from the same operands."),
    Term("custom VJP", "A vector-Jacobian product that the user wrote in place of the derived one.", ("custom_vjp",)),
    Term("dead code", "Operations whose results nothing uses and that have no effect.", ("dead", "eliminate_dead")),
    Term("extent", "The length of an array along an axis, if it is known only at launch."),
    Term("hoist", "To move what is the same in every iteration to before the loop.", ("hoists", "hoist_invariants")),
    Term("inline", "To copy the body of a called function to where it is called.", ("inlined", "inlines", "inlining")),
    Term("invariant", "The same in every iteration of a loop.", ("loop-invariant", "invariants")),
    Term("IR", "Intermediate representation: the program between its source and machine code, as passes see it."),
    Term(
        "lanes",
        "The slots of a vector register: each holds another iteration of a parallel loop, and all run at once.",
        ("lane",),
    ),
    Term(
        "local",
        "A variable in a task's own memory that may be written more than once, unlike an SSA variable.",
        ("cell",),
    ),
    Term("lower", "To express operations by simpler ones, nearer to the machine.", ("lowers", "lowered", "lowering")),
    Term("mask", "Selects the lanes of an operation: those that take a branch, or are still in a loop.", ("masks",)),
    Term(
        "noalias",
        "Marks an array that shares no memory with anything else that the kernel touches; each launch checks it.",
    ),
    Term(
        "offload",
        "To split a kernel into tasks, which the runtime starts one by one: serially, or on all threads.",
        ("offloads", "offloading"),
    ),
    Term("pass", "A compiler step that turns the program into another form with the same meaning.", ("passes",)),
    Term("phi", "In LLVM IR: a value that depends on the block from which control came."),
    Term("primal", "The computation that is differentiated, and its values, as opposed to adjoints."),
    Term(
        "privatise",
        "To give each thread its own copy of what all add to, and merge the copies at the end: no atomics in the loop.",
        ("privatises", "private"),
    ),
    Term("recompute", "To compute a primal value again in the reverse sweep instead of saving it.", ("recomputed",)),
    Term("region", "A piece of code inside an operation, with parameters and results: a loop's body, a branch."),
    Term(
        "reverse mode",
        "Differentiation from the loss backwards: the primal first, then a sweep that computes all adjoints at once.",
        ("reverse", "sweep", "reverse sweep"),
    ),
    Term("scalarise", "To replace vectors and matrices by their components.", ("scalarises",)),
    Term("specialisation", "A kernel compiled for the types of its arguments and for the fields that it uses."),
    Term(
        "SSA",
        "Static single assignment: each variable is bound once, so that every use has one definition.",
        ("static single assignment",),
    ),
    Term(
        "stack",
        "Where a loop saves the values of its iterations (push), for the reverse sweep to take back (pop); a tape.",
        ("push", "pop", "tape"),
    ),
    Term("task", "A piece of a launch, serial or a parallel loop, with a barrier before the next one."),
    Term("vectorise", "To run several iterations at once, one in each lane of a vector.", ("vectorised", "vectorize")),
    Term(
        "yield", "Ends a region with its results: the next iteration's carried values, or what a branch evaluates to."
    ),
)
