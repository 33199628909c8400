"""Things that go while something still uses them: kernels, fields, whole sessions under a launch or a live view."""

from collections.abc import Callable

# A launch on another thread that ends when it is asked to.
LAUNCHED = """
import gc
from tinote.runtime import layout
from tinote.runtime.launch import LaunchStopped
from tinote.runtime.threads import _stoppables, stop_all

def launching():
    blocks = [block for one in list(_stoppables) for block in getattr(one, "_blocks", ())]
    return any(not block.head[layout.STOP // 8] & 0xFFFFFFFF for block in blocks)

def launched(make):
    # Nothing outside of its own thread knows the kernel that `make` returns, nor what it uses.
    made, ended = threading.Event(), []
    def work():
        try:
            run = make()
            made.set()
            ended.append(run(1))
        except BaseException as error:
            ended.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    while not (made.is_set() and launching()):
        assert not ended, ended
        time.sleep(0.001)
    return thread, ended
"""


def test_a_launch_holds_its_code_and_its_memory(child: Callable[..., str]) -> None:
    """Other kernels and fields are made meanwhile, which would come to lie where its own were."""
    script = """
def make():
    x = ti.field(ti.i32, shape=1 << 16)
    a = np.zeros(1 << 16, np.int32)
    @ti.kernel
    def spin(x: ti.template(), a: ti.types.ndarray(), forever: ti.i32):
        for i in range(2):
            while forever == 1:
                x[i] += 1
                a[i] += x[(i * 77) % 65536]
    spin(x, a, 0)
    return lambda forever: spin(x, a, forever)
thread, ended = launched(make)
for number in range(30):
    other = ti.field(ti.i32, shape=1 << 16)
    @ti.kernel
    def fresh(k: ti.i32):
        for i in other:
            other[i] = i * k + number
    fresh(3)
    gc.collect()
    assert other[5] == 15 + number
ti.reset()
gc.collect()
assert thread.is_alive() and not ended, ended
while not (stopped := stop_all()):
    time.sleep(0.001)
assert stopped == 1
thread.join()
assert isinstance(ended[0], LaunchStopped), ended
data = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
data.from_numpy(np.arange(N, dtype=float))
"""
    assert child(LAUNCHED + script) == "alive\n"


def test_a_reset_and_new_kernels_under_a_running_live_view(child: Callable[..., str]) -> None:
    """The view shows an error that says what is gone, other cells go on, and a new view runs."""
    script = """
import asyncio, gc
from tinote.viz.live.particles import Particles

def simulation(speed):
    x = ti.Vector.field(2, ti.f32, shape=500)
    @ti.kernel
    def step():
        for i in x:
            x[i] += speed * ti.Vector([ti.random(), 1.0])
    return x, step

async def until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "timed out"
        await asyncio.sleep(0.002)

def running(x, step):
    view = Particles(x, step, bounds=((0, 1), (0, 1)))
    def receive(content, buffers=None):
        if content["kind"] == "frame":
            view._receive(None, {"kind": "ack", "frame": content["frame"]}, [])
    view.send = receive
    view._receive(None, {"kind": "ready", "view": "page"}, [])
    view.play()
    return view

async def session():
    global data, loss, view_of_old
    x, step = simulation(0.001)
    view_of_old = x.numpy_view()
    view = running(x, step)
    await until(lambda: view.steps > 5)
    del x, step
    # The cell is run again: new kernels under the same names, while the old ones run.
    for number in range(10):
        x, step = simulation(0.001 * number)
        step()
        gc.collect()
        before = view.steps
        await until(lambda: view.steps > before)
    assert not view.error
    ti.reset()
    await until(lambda: view.error)
    assert "reset" in view.error, view.error
    assert view.state != "playing"
    seen = view_of_old.copy()
    assert np.isfinite(seen).all() and (seen[:, 1] > 0).all()
    x, step = simulation(0.5)
    other = running(x, step)
    await until(lambda: other.steps > 3)
    assert not other.error
    assert (view_of_old == seen).all(), "nobody writes there any more"
    for each in (view, other):
        each.close()

asyncio.run(session())
gc.collect()
assert view_of_old.sum() > 0
data = ti.field(ti.f64, shape=N, needs_grad=True)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
data.from_numpy(np.arange(N, dtype=float))
"""
    assert child(script) == "alive\n"
