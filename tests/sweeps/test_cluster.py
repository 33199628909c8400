"""Sweeps on a cluster of Dask's whose workers are processes of this machine."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import pytest

import tinote as ti
from tests.sweeps.interrupts import CLUSTER, STUCK, interrupted
from tinote.errors import SweepError
from tinote.lang.sweeps import cluster as cluster_module


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=2, processes=True, dashboard_address=":0", protocol="tcp://"
        ) as made,
    ):
        yield made


def _simulation() -> Any:
    x = ti.field(ti.f32, 256)
    x.fill(1)

    @ti.kernel
    def step(k: ti.f32) -> ti.f32:
        found = 0.0
        for i in x:
            x[i] += k * ti.random()
            found += x[i]
        return found

    def simulate(k: float) -> float:
        step(k)
        return step(k)

    return simulate


@pytest.mark.slow
def test_on_a_cluster_as_here(cluster: Any) -> None:
    simulate = _simulation()
    points = {"k": [0.1 * n for n in range(40)]}
    here = ti.sweep(simulate, points, workers=1)
    there = ti.sweep(simulate, points, where=cluster.scheduler_address, threads=1)
    assert there.drop_vars("seconds").identical(here.drop_vars("seconds"))


@pytest.mark.slow
def test_points_on_two_threads_of_a_worker_share_nothing(cluster: Any) -> None:
    """A worker has two tasks at a time: their points come one after the other, on both threads."""
    x = ti.field(ti.f32, 1 << 17)
    x.fill(1)
    threads: list[int] = []

    @ti.kernel
    def add(k: ti.f32) -> ti.f32:
        found = 0.0
        for i in x:
            x[i] += k * ti.random()
            found += x[i]
        return found

    def simulate(k: float) -> dict[str, float]:
        add(k)
        threads.append(threading.get_ident())
        time.sleep(0.02)  # another point would get in here
        return {"length": add(k), "before": len(threads), "threads": ti.cfg.num_threads}

    points = {"k": [0.1 * n for n in range(24)]}
    there = ti.sweep(simulate, points, where=cluster, progress=False)
    here = ti.sweep(simulate, points, workers=1, threads=2, progress=False)
    assert there.drop_vars("seconds").identical(here.drop_vars("seconds"))
    assert (there["before"] == 1).all() and (there["threads"] == 2).all()


@pytest.mark.slow
def test_every_kind_of_object_goes_to_a_cluster(cluster: Any, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("objects.py")), str(tmp_path / "sent")]
    done = subprocess.run([*command, cluster.scheduler_address], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second, _, there = json.loads(done.stdout)
    assert there == [first, first, second, True]


@pytest.mark.slow
def test_workers_that_are_killed_lose_nothing(cluster: Any, tmp_path: Path) -> None:
    def slow(k: int) -> int:
        time.sleep(0.02)
        if k in (20, 30) and not (tmp_path / str(k)).exists():
            (tmp_path / str(k)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return k * k

    found = ti.sweep(slow, {"k": range(60)}, where=cluster, progress=False)
    assert found["result"].values.tolist() == [k * k for k in range(60)]


@pytest.mark.slow
def test_a_point_that_always_kills_fails_alone(cluster: Any) -> None:
    def deadly(k: int) -> int:
        if k == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return k

    with pytest.warns(UserWarning, match="1 of 12 points"):
        found = ti.sweep(deadly, {"k": range(12)}, where=cluster)
    assert "its worker died" in str(found["error"].values[5])
    assert found["result"].drop_sel(k=5).values.tolist() == [k for k in range(12) if k != 5]


def test_other_versions_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cluster_module.versions()
    monkeypatch.setattr(cluster_module, "versions", lambda: {**real, "llvmlite": "0.1"})
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=120)  # those that the test before has killed come again
    with pytest.raises(SweepError, match=rf"has llvmlite {real['llvmlite']} in place of 0\.1"):
        ti.sweep(_simulation(), {"k": [1.0]}, where=cluster)


def _gone(kill_at: int, folder: Path) -> None:
    """Kills this process, the first time."""
    mark = folder / str(kill_at)
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_eight_workers_two_of_which_are_killed(tmp_path: Path) -> None:
    """The table of one process here, of all eight, of two of them, in another order, with deaths in the middle."""
    simulate = _simulation()
    folder = str(tmp_path)
    kill = _gone

    def measured(k: int) -> dict[str, float]:
        if k in (41, 77) and Path(folder, "armed").exists():
            kill(k, Path(folder))
        time.sleep(0.05)
        return {"length": simulate(0.01 * k), "worker": os.getpid()}

    points = [{"k": k} for k in range(120)]
    here = ti.sweep(measured, points, workers=1, progress=False)
    order = np.random.default_rng(0).permutation(len(points))
    with (
        dask.config.set({"distributed.worker.daemon": True}),
        distributed.LocalCluster(
            n_workers=8, threads_per_worker=1, processes=True, dashboard_address=":0", protocol="tcp://"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        client.wait_for_workers(8, timeout=300)

        def table(rows: Any) -> Any:
            return ti.sweep(measured, rows, where=client, progress=False)

        there = table(points)
        shuffled = table([points[i] for i in order])
        # Balanced once each of them has the program; what that takes, and so how many points the others run meanwhile,
        # is a matter of the machine.
        runs = [int((shuffled["worker"] == worker).sum()) for worker in np.unique(shuffled["worker"])]
        assert len(runs) == 8 and sum(runs) == 120 and min(runs) >= 10 and max(runs) <= 20
        (tmp_path / "armed").touch()
        killed = table(points)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["41", "77", "armed"]
    for name in ("length", "seed", "error"):
        wanted = here[name].values
        assert (there[name].values == wanted).all() and (killed[name].values == wanted).all()
        assert (shuffled[name].values == wanted[order]).all()
    assert (killed["error"] == "").all()


@pytest.mark.slow
def test_ensembles_are_reduced_on_the_workers(cluster: Any, tmp_path: Path) -> None:
    x = ti.field(ti.f32, 64, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.linspace(0, 1, 64, dtype=np.float32))
    folder, kill = str(tmp_path), _gone

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += ti.sin(x[i] * 10 * ti.random())

    def run(scene: int) -> None:
        if scene == 13 and folder:
            kill(scene, Path(folder))
        measure()

    scenes = {"scene": range(50)}
    with ti.ensemble(run, scenes, wrt=x, loss=loss, where=cluster, threads=1) as mean:
        value, gradient = mean()
        losses = mean.losses.copy()
        again, same = mean()
    assert (tmp_path / "13").exists() and again == value and (same == gradient).all()
    with ti.ensemble(run, scenes, wrt=x, loss=loss, workers=2) as mean:
        assert mean()[0] == value and (mean()[1] == gradient).all() and (mean.losses == losses).all()

    def fails(scene: int) -> None:
        raise ValueError(f"no scene {scene}")

    with (
        ti.ensemble(fails, {"scene": [7]}, wrt=x, loss=loss, where=cluster) as mean,
        pytest.raises(SweepError, match="no scene 7"),
    ):
        mean()


@pytest.mark.slow
def test_a_kernel_compiles_once_for_all_workers(tmp_path: Path) -> None:
    simulate = _simulation()

    def origin(k: float) -> int:
        simulate(k)
        step = simulate.__closure__[0].cell_contents
        origins = [native.origin.value for _, native in step.instances[0].specialisation.results()]
        time.sleep(0.2)
        return os.getpid() if "compiled" in origins else 0

    before = {name: os.environ.get(name) for name in ("TINOTE_CACHE_DIR", "TINOTE_CACHE_LIMIT")}
    os.environ.update({"TINOTE_CACHE_DIR": str(tmp_path / "cache"), "TINOTE_CACHE_LIMIT": "256M"})
    try:
        found = ti.sweep(origin, {"k": [0.5 + n / 16 for n in range(16)]}, workers=4, progress=False)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    assert len(set(found["result"].values.tolist()) - {0}) == 1  # the process that has compiled it


@pytest.mark.slow
def test_an_interrupt_ends_a_sweep_on_a_cluster(tmp_path: Path) -> None:
    seconds, done = interrupted(tmp_path, "where=cluster", CLUSTER)
    assert seconds < 1
    assert done and set(done) <= set(range(STUCK))


def test_plain_tasks_of_dask_take_kernels(cluster: Any) -> None:
    simulate = _simulation()
    with distributed.Client(cluster, set_as_default=False) as client:
        found = client.gather(client.map(simulate, [0.0, 0.0]))
    assert found == [256, 256]
