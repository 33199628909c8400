"""Sweeps on a cluster of Dask's whose workers are processes of this machine."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

import tinote as ti
from tinote.errors import SweepError
from tinote.lang.sweeps import cluster as cluster_module


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp://"
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
    there = ti.sweep(simulate, points, where=cluster)
    assert there.drop_vars("seconds").identical(here.drop_vars("seconds"))
    address = ti.sweep(simulate, points, where=cluster.scheduler_address, threads=1)
    assert address.drop_vars("seconds").identical(here.drop_vars("seconds"))


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


def test_plain_tasks_of_dask_take_kernels(cluster: Any) -> None:
    simulate = _simulation()
    with distributed.Client(cluster, set_as_default=False) as client:
        found = client.gather(client.map(simulate, [0.0, 0.0]))
    assert found == [256, 256]
