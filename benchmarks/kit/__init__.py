"""What the kit does, compared with programs by hand and libraries: neighbours in a liquid and in a fluid of particles,
transforms of a plane, trees of triangles and points, diffusion on a plane, differential equations, training of
networks, files and random numbers.

A step should be at least as fast as Taichi's program and take at most 1.3 times that of C, all on one thread. Each
contender's steps are those of `system.py`; the lists and grids of C are those that one writes first. Transforms should
take at most the time of SciPy's, multigrid that of pyamg's solution without its set-up, differential equations that of
Diffrax and SciPy with the same methods, and a step of training that of JAX. Trees should be built, and find nearest
points, in the time of libigl and of SciPy; rays take longer than those of Embree, which tests several boxes at once in
the lanes of a processor.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

C = "C by hand"
DIALECT = "benchmarks.kit.dialect"


def rows(kind: str) -> tuple[Contender, ...]:
    """The contenders for a kind of particles."""
    return (
        Contender("tinote", "benchmarks.kit.tinote_", "tinote", {"kind": kind, "lanes": "auto"}, C),
        Contender("tinote, lanes always", "benchmarks.kit.tinote_", "tinote", {"kind": kind, "lanes": "always"}, C),
        Contender("tinote, grid by hand", DIALECT, "tinote", {"kind": kind}, C),
        Contender("taichi, grid by hand", DIALECT, "taichi", {"kind": kind}, C),
        Contender("quadrants, grid by hand", DIALECT, "quadrants", {"kind": kind}, C),
        Contender(C, "benchmarks.kit.c_", parameters={"kind": kind}),
    )


def transforms(kind: str) -> Case:
    """A plane of real or complex numbers, there and back."""
    scipy, module, given = "SciPy (pocketfft)", "benchmarks.kit.transforms", {"kind": kind}
    contenders = (Contender("tinote", module, "tinote", given, scipy), Contender(scipy, module, parameters=given))
    return Case(f"{kind} transform of 512² in f32, and its inverse", contenders, {"n": 512}, at_most_over=1.0)


def trees(title: str, work: str, library: str, package: str | None, most: float | None) -> Case:
    """A tree of 100,000 triangles or points, built, refitted or asked 100,000 questions."""
    module, given = "benchmarks.kit.geometry", {"work": work}
    contenders = (
        Contender("tinote", module, "tinote", given, library),
        Contender(library, module, package, given),
    )
    return Case(f"100,000 {title}", contenders, {"n": 100_000}, at_most_over=most, tolerance=2e-3)


def diffusion(kind: str, title: str) -> Case:
    """A solution to the same residual, in f64."""
    module, pyamg = "benchmarks.kit.diffusion", "pyamg, classical"

    def row(name: str, package: str | None, method: str, with_set_up: int = 0) -> Contender:
        return Contender(name, module, package, {"kind": kind, "method": method, "with_set_up": with_set_up}, pyamg)

    contenders = [
        row("tinote", "tinote", "multigrid"),
        row("pyamg, aggregation", "pyamg", "aggregation"),
        row("pyamg, classical, with set-up", "pyamg", "classical", 1),
        Contender(pyamg, module, "pyamg", {"kind": kind, "method": "classical"}),
    ]
    if kind == "periodic":
        contenders.insert(1, row("tinote, ti.fft.Poisson", "tinote", "transforms"))
    else:
        contenders.insert(1, row("SciPy, with factors", None, "factors"))
    return Case(title, tuple(contenders), {"n": 512}, at_most_over=1.0, most_rounds=20)


def equations(n: int) -> Case:
    """Lorenz's, from so many beginnings."""
    peer, module = "Diffrax", "benchmarks.kit.equations"
    contenders = (
        Contender("tinote", module, "tinote", over=peer),
        Contender(peer, module, "diffrax"),
        Contender("SciPy (solve_ivp)", module, over=peer),
    )
    return Case(f"Lorenz's equations with step control, {n:,} at once", contenders, {"n": n}, at_most_over=1.0)


def stiff(title: str, what: str) -> Case:
    """Stiff equations."""
    scipy, module = "SciPy (BDF)", "benchmarks.kit.stiff"
    contenders = (Contender("tinote", module, "tinote", over=scipy), Contender(scipy, module))
    return Case(title, contenders, {"what": what}, at_most_over=1.0)


def training(sizes: str, batch: int) -> Case:
    """A step of training a network."""
    peer, module = "JAX and Optax", "benchmarks.kit.networks"
    contenders = (
        Contender("tinote", module, "tinote", {"way": "batched"}, peer),
        Contender("tinote, in one kernel", module, "tinote", {"way": "kernel"}, peer),
        Contender(peer, module, "optax"),
        Contender("PyTorch", module, "torch", {}, peer),
    )
    title = f"network {sizes}, batch of {batch}, a step of training"
    return Case(title, contenders, {"sizes": sizes, "batch": batch}, at_most_over=1.0)


def files(title: str, what: str, library: str, package: str | None, n: int, most: float) -> Case:
    """A file, or random numbers."""
    module, given = "benchmarks.kit.files", {"what": what}
    contenders = (Contender("tinote", module, "tinote", given, library), Contender(library, module, package, given))
    return Case(title, contenders, {"n": n}, at_most_over=most, most_rounds=10)


CASES = (
    Case("Lennard-Jones liquid, 100,000 particles, a step", rows("liquid"), {"n": 100_000}, at_most_over=1.3),
    Case("SPH, 100,000 particles, a step", rows("fluid"), {"n": 100_000}, at_most_over=1.3),
    transforms("real"),
    transforms("complex"),
    trees("triangles, a tree built", "rays build", "Embree", "embreex", 1.0),
    trees("triangles, a tree refitted, or built", "rays refit", "Embree", "embreex", 0.1),
    trees("triangles, as many first hits of rays", "rays", "Embree", "embreex", None),
    trees("triangles, as many nearest points", "nearest", "libigl", "igl", 1.0),
    trees("points, a tree built", "points build", "SciPy (cKDTree)", None, 1.0),
    trees("points, as many nearest ones", "points", "SciPy (cKDTree)", None, 1.0),
    diffusion("even", "Poisson's equation on 512² cells"),
    diffusion("discs", "diffusion on 512² cells, with discs that conduct 100 times better"),
    diffusion("periodic", "Poisson's equation on 512² cells, periodic"),
    equations(1),
    equations(1_000),
    equations(30_000),
    stiff("Robertson's reactions, to 40", "robertson"),
    stiff("fronts on a line of 100 cells", "fronts"),
    training("2-64-64-1", 1024),
    training("2-16-16-1", 64),
    files("a million tetrahedra and a field on them, as VTU", "mesh", "meshio", "meshio", 56, 1.0),
    files("a field of 16 million numbers, saved", "state", "NumPy (savez)", None, 256, 1.5),
    files("16 million normal numbers", "normal", "NumPy", None, 256, 1.0),
)
