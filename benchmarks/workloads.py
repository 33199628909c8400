"""Every workload that is measured, by the name that the command line knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks import (
    ad,
    first_call,
    fixed_cost,
    gradients,
    gravity,
    implicit,
    import_time,
    kit,
    lanes,
    launch,
    mpm,
    nested,
    pictures,
    rollout,
    roofline,
    sparse,
)
from benchmarks.contract import Case, Contender

__all__ = ["WORKLOADS", "restrict"]

WORKLOADS: Mapping[str, tuple[Case, ...]] = {
    "gravity": gravity.CASES,
    "gradients": gradients.CASES,
    "ad": ad.CASES,
    "first_call": first_call.CASES,
    "fixed_cost": fixed_cost.CASES,
    "implicit": implicit.CASES,
    "import": import_time.CASES,
    "kit": kit.CASES,
    "lanes": lanes.CASES,
    "launch": launch.CASES,
    "mpm": mpm.CASES,
    "nested": nested.CASES,
    "pictures": pictures.CASES,
    "rollout": rollout.CASES,
    "roofline": roofline.CASES,
    "sparse": sparse.CASES,
}


def restrict(case: Case, names: Sequence[str] | None) -> Case:
    """Return `case` with only the contenders whose name begins with one of `names`."""

    def wanted(contender: Contender) -> bool:
        return not names or contender.name.split()[0] in names

    return replace(case, contenders=tuple(filter(wanted, case.contenders)))
