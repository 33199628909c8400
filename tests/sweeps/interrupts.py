"""A script whose sweep is interrupted as by Ctrl-C while points are stuck, or while they come quickly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import zarr

STUCK = 6
"""The first of the points that never end."""

SCRIPT = """\
import sys, time
import tinote as ti

x = ti.field(ti.f32, 8)

@ti.kernel
def step(k: ti.f32) -> ti.f32:
    for i in x:
        x[i] += k
    return x[0]

def run(k):
    if k >= {stuck}:
        time.sleep(600)
    return step(k)

{prepare}
print("begin", flush=True)
try:
    ti.sweep(run, {{"k": range({points})}}, store=sys.argv[1], progress=False, {options})
except KeyboardInterrupt as error:
    print("ended", time.time(), flush=True)
    print(sorted(error.results["result"].dropna("k").values.tolist()), error, flush=True)
"""


class Ended(NamedTuple):
    """`seconds`: between the interrupt and the end of the sweep; `done`: the results that it had by then."""

    seconds: float
    done: list[float]


#: What a script needs for `where=cluster`.
CLUSTER = """
import dask, distributed
dask.config.set({"distributed.worker.daemon": True})
cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", protocol="tcp://")
"""


def interrupted(folder: Path, options: str, prepare: str = "", *, busy: bool = False) -> Ended:
    """What becomes of a sweep with these options. All workers are in points that never end then; or, if they are
    `busy`, in short ones. Its results are in its store, too. What `prepare` starts imports the script, which has a
    guard then.
    """
    script, store = folder / "script.py", folder / "store"
    text = SCRIPT.format(
        stuck=10**9 if busy else STUCK, points=20_000 if busy else 12, prepare=prepare, options=options
    )
    script.write_text(f"if __name__ == '__main__':\n{textwrap.indent(text, '    ')}" if prepare else text)
    command = [sys.executable, str(script), str(store)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "begin\n"
        deadline = time.monotonic() + 300
        while not (store / "result").exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.1)
        time.sleep(1)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        ended, reported = child.stdout.readline(), child.stdout.readline()
    finally:
        os.killpg(child.pid, signal.SIGKILL)  # the workers of a cluster run their last points on
        child.communicate()
    assert ended.startswith("ended") and "the sweep was interrupted" in reported
    done = json.loads(reported.partition("]")[0] + "]")
    assert (zarr.open_group(store, mode="r")["state"][...] == 1).sum() == len(done)
    return Ended(float(ended.split()[1]) - sent, done)
