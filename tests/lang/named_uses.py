"""The smallest typical use of each name of the dialect that existing programs use, by topic, with what comes out."""

from __future__ import annotations

HEADING = """\
import warnings
import numpy as np
import pytest
import tinote as ti
import tinote.math as tm
ti.init(random_seed=1)
x = ti.field(ti.f32, shape=4, needs_grad=True, needs_dual=True)
v = ti.Vector.field(2, ti.f32, shape=4)
M = ti.Matrix.field(2, 2, ti.f32, shape=2)
loss = ti.field(ti.f32, shape=(), needs_grad=True, needs_dual=True)
def close(a, b):
    return np.allclose(np.asarray(a, float), np.asarray(b, float), atol=1e-5)
"""

USES: dict[str, str] = {
    "declaring": """
assert ti.var(dt=ti.f32, shape=3).shape == (3,) and ti.field(int, ()).dtype == ti.i32
---
for t in (ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16, ti.f32, ti.f64, ti.u1):
    y = ti.field(t, shape=2)
    y[1] = 1
    assert y[1] == 1 and y.dtype == t
---
assert (ti.float16, ti.float32, ti.int32, ti.int64) == (ti.f16, ti.f32, ti.i32, ti.i64)
assert (ti.uint8, ti.uint16, ti.uint32, ti.uint64) == (ti.u8, ti.u16, ti.u32, ti.u64)
---
y, z = ti.var(ti.f32), ti.field(ti.i32)
ti.root.dense(ti.ij, (4, 3)).dense(ti.k, 2).place(y)
ti.root.place(z)
y[3, 2, 1] = 5
z[None] = 7
assert y.shape == (4, 3, 2) and y.to_numpy().sum() == 5 and z[None] == 7
---
a, b, c, d = (ti.field(ti.f32) for _ in range(4))
ti.root.dense(ti.i, 2).dense(ti.j, 3).dense(ti.l, 4).place(a)
ti.root.dense(ti.jk, (2, 3)).place(b)
ti.root.dense(ti.ijkl, 2).place(c)
ti.root.dense(ti.axes(0, 1), (2, 3)).place(d)
assert (a.shape, b.shape, c.shape, d.shape) == ((2, 3, 4), (2, 3), (2, 2, 2, 2), (2, 3))
assert ti.ijk == ti.axes(0, 1, 2) and ti.ijl == ti.axes(0, 1, 3)
---
block = ti.root.dense(ti.i, 4)
y = ti.field(ti.f32)
block.place(y)
assert y.parent() is block and y.snode.parent() is block and y.parent(2) is ti.root and y.parent(3) is None
assert block.shape == y.snode.shape == (4,) and isinstance(block, ti.SNode)
assert x.parent().shape == (4,) and x.snode.parent().parent().parent() is None
---
y = ti.field(ti.i32)
ti.root.dense(ti.ij, (4, 3)).place(y)
@ti.kernel
def total() -> ti.i32:
    s = 0
    for i, j in y.parent():
        s += 1
    for I in ti.grouped(y.snode.parent()):
        s += I[0]
    for i in x.parent():
        s += 100 * i
    return s
assert total() == 12 + 3 * 6 + 600
---
builder = ti.FieldsBuilder()
y = ti.field(ti.f32, needs_grad=True)
builder.dense(ti.i, 5).place(y)
tree = builder.finalize()
@ti.kernel
def work():
    for i in y:
        y[i] += 1
work()
kept = y.numpy_view()
tree.destroy()
for use in (lambda: y[2], lambda: y.grad.fill(1), work, y.to_numpy):
    with pytest.raises(ti.errors.FieldError, match="destroyed"):
        use()
assert kept.tolist() == [1] * 5
x[1] = 2
assert x[1] == 2
---
y, z = ti.field(ti.f32), ti.field(ti.f32)
ti.root.dense(ti.i, 2).place(y, z)
ti.root.lazy_grad()
assert y.grad.shape == z.grad.shape == (2,)
---
y = ti.field(ti.f32)
ti.root.dense(ti.i, 2).place(y)
ti.root.lazy_dual()
assert y.dual.shape == (2,)
---
y = ti.Vector.field(2, ti.f32, shape=3, layout=ti.Layout.SOA)
z = ti.Vector.field(2, ti.f32, shape=3, layout=ti.Layout.AOS)
y[1] = z[1] = [1, 2]
assert (y.to_numpy() == z.to_numpy()).all() and y.numpy_view().strides != z.numpy_view().strides
---
y = ti.field(ti.types.vector(3, ti.f32), shape=4)
assert isinstance(y, ti.MatrixField) and y.n == 3 and isinstance(x, ti.ScalarField) and isinstance(x, ti.Field)
assert ti.field(ti.types.struct(a=ti.f32), shape=4).a.shape == (4,)
---
y = ti.field(ti.f32, shape=2)
ti.reset()
with pytest.raises(ti.errors.FieldError, match="reset"):
    y[0]
---
assert ti.misc.get_max_num_indices() == 12
assert ti.field(ti.f32, shape=(1,) * 8).shape == (1,) * 8
""",
    "whole fields": """
x.fill(2)
y = ti.field(ti.f32, shape=4)
y.copy_from(x)
y.from_numpy(y.to_numpy() * 3)
assert y.to_numpy().tolist() == [6] * 4
---
v.fill(1)
assert v.get_scalar_field(1)[3] == 1 and len(v.get_field_members()) == 2 and len(x.get_field_members()) == 1
---
a = ti.ndarray(ti.f32, shape=3)
b = ti.Vector.ndarray(2, ti.f32, shape=3)
c = ti.Matrix.ndarray(2, 3, ti.f32, shape=3)
a[1], b[1], c[1] = 5, [1, 2], [[1, 2, 3], [4, 5, 6]]
assert a.to_numpy().sum() == 5 and b.to_numpy().sum() == 3 and c.to_numpy().sum() == 21
assert isinstance(b, ti.VectorNdarray) and isinstance(c, ti.MatrixNdarray) and c.element_shape == (2, 3)
---
s = ti.Struct.field({"a": ti.f32, "p": tm.vec2}, shape=3)
s[1].a = 2
s[1].p = [3, 4]
assert s.a[1] == 2 and s.keys == ["a", "p"] and s.get_member_field("p")[1].y == 4 and len(s.get_field_members()) == 2
---
pair = ti.types.struct(a=ti.f32, n=ti.i32)
@ti.dataclass
class Ball:
    pos: tm.vec2
    r: ti.f32
    @ti.func
    def area(self):
        return self.r * self.r * tm.pi
balls = Ball.field(shape=2)
balls[0] = Ball(pos=[1, 2], r=2)
@ti.kernel
def area(i: ti.i32) -> ti.f32:
    p = pair(1, 2)
    return balls[i].area() + p.n
assert close(area(0), 4 * np.pi + 2) and ti.Struct(a=1).a == 1
""",
    "kernels": """
@ti.func
def twice(a):
    return 2 * a
@ti.kernel
def work(a: ti.types.ndarray(), n: ti.i32, y: ti.template(), w: ti.types.vector(2, ti.f32),
         m: ti.types.matrix(2, 2, ti.f32)) -> ti.f32:
    for i in range(n):
        y[i] = twice(a[i]) + w[0] + m[1, 1]
    return y[0]
assert work(np.arange(4, dtype=np.float32), 4, x, tm.vec2(1, 2), tm.mat2(1, 2, 3, 4)) == 5 and x[3] == 11
---
@ti.real_func
def both(a: ti.ref(ti.f32), b: ti.f32) -> ti.f32:
    a = b
    return a + 1
@ti.kernel
def work() -> ti.f32:
    a = 1.0
    c = both(a, 5.0)
    return a + c
assert work() == 11
---
@ti.pyfunc
def cube(a):
    return a * a * a
@ti.experimental.real_func
def next_to(a: ti.i32) -> ti.i32:
    return a + 1
@ti.kernel
def work(i: ti.i32) -> ti.i32:
    return cube(next_to(ti.assume_in_range(i, 0, 0, 4)))
assert work(2) == cube(3) == 27
---
@ti.data_oriented
class Counter:
    def __init__(self):
        self.n = ti.field(ti.i32, shape=())
    @ti.kernel
    def add(self, k: ti.i32):
        self.n[None] += k
counter = Counter()
counter.add(3)
counter.add(4)
assert counter.n[None] == 7
---
@ti.kernel
def loops() -> ti.i32:
    s = 0
    for i, j in ti.ndrange(3, (1, 3)):
        s += i * j
    for I in ti.grouped(ti.ndrange(2, 2)):
        s += 100 * I[1]
    for k in ti.static(range(3)):
        s += 1000 * k
    ti.loop_config(serialize=True, block_dim=64)
    for i in range(4):
        x[ti.loop_unique(i)] = i
    ti.static_assert(x.shape[0] == 4)
    ti.static_print("compiled")
    return s
assert loops() == 9 + 200 + 3000 and x[3] == 3
---
n = ti.field(ti.i32, shape=8)
@ti.kernel
def work() -> ti.i32:
    n[0], n[4], n[5], n[6] = 0, 7, 100, 1
    for i in range(4):
        ti.atomic_add(n[0], i)
        ti.atomic_sub(n[1], i)
        ti.atomic_max(n[2], i)
        ti.atomic_min(n[3], -i)
        ti.atomic_and(n[4], i + 4)
        ti.atomic_or(n[5], i)
        ti.atomic_xor(n[7], i)
        ti.atomic_mul(n[6], i + 1)
    return ti.atomic_add(n[0], 1)
assert work() == 6
assert n.to_numpy().tolist() == [7, -6, 3, -3, 4, 103, 24, 0]
ti.sync()
---
@ti.kernel
def draw() -> ti.types.vector(2, ti.f32):
    return ti.Vector([ti.random(), ti.randn()])
first = draw()
assert 0 <= first.x < 1 and draw().x != first.x
---
@ti.kernel
def split() -> tm.vec2:
    m, e = ti.frexp(6.0)
    return tm.vec2(m, e)
assert split().to_list() == [0.75, 3]
---
@ti.kernel
def convert() -> ti.f32:
    return ti.cast(ti.u8(200), ti.f32) + ti.i32(2.9) + ti.one(x[0]) + ti.zero(x[0])
assert convert() == 203
---
assert ti.types.is_integral(ti.u8) and not ti.types.is_signed(ti.u8) and ti.types.is_real(ti.f16)
assert ti.util.to_numpy_type(ti.f32) is np.float32 and ti.util.has_pytorch() in (True, False)
---
assert ti.ops.sin(0.0) == 0
from tinote.lang.exception import TaichiSyntaxError
from tinote.lang.misc import get_host_arch_list
from tinote.types import ndarray, vector
from tinote.algorithms import parallel_sort
from tinote._lib import core
assert TaichiSyntaxError is ti.TaichiSyntaxError and get_host_arch_list()[0] in (ti.x64, ti.arm64)
assert vector is ti.types.vector and ndarray is ti.types.ndarray and core.get_max_num_indices() == 12
assert not ti._lib.core.with_cuda() and core.GGUI_AVAILABLE and ti.ui.Window("shown", (64, 64)).running
""",
    "sessions": """
with warnings.catch_warnings(record=True) as reported:
    warnings.simplefilter("always")
    ti.init(arch=ti.dx11)
    ti.init(arch=ti.dx11)
    ti.init(arch=[ti.dx12, ti.cpu])
    ti.init(arch=ti.lang.misc.get_host_arch_list()[0])
assert [str(w.message) for w in reported] == ["ti.dx11 is not available, so kernels run on the CPU"]
assert ti.cfg.arch is ti.cpu and ti.cfg.arch in ti.lang.misc.get_host_arch_list()
assert ti.cfg.arch != ti.gpu and ti.gpu == ti.vulkan
assert ti.cfg.default_fp == ti.f32 and ti.cfg.default_ip == ti.i32 and not ti.cfg.debug
assert ti.is_arch_supported(ti.cpu) and ti.is_arch_supported(ti.python) and not ti.is_arch_supported(ti.cuda)
ti.set_logging_level(ti.ERROR)
assert not ti.is_logging_effective(ti.INFO)
with pytest.raises(ti.errors.FieldError, match="not a level"):
    ti.set_logging_level("loud")
---
ti.init(kernel_profiler=True)
y = ti.field(ti.f32, shape=4)
@ti.kernel
def work():
    for i in y:
        y[i] = i
work()
ti.profiler.print_kernel_profiler_info()
ti.profiler.print_memory_profiler_info()
assert ti.profiler.query_kernel_profiler_info("work").count == 1
ti.profiler.clear_kernel_profiler_info()
assert ti.profiler.get_kernel_profiler_total_time() == 0
---
@ti.kernel
def name():
    x[0] = nowhere
@ti.kernel
def kind():
    x[0] = v[0]
@ti.kernel
def index(i: ti.i32):
    x[i] = 1
@ti.kernel
def claim(i: ti.i32):
    assert i > 0
@ti.kernel
def text():
    with x:
        pass
for kernel, args, errors in (
    (name, (), (ti.TaichiNameError, ti.TaichiCompilationError)),
    (kind, (), (ti.TaichiTypeError, ti.TaichiCompilationError)),
    (text, (), (ti.TaichiSyntaxError, ti.TaichiCompilationError)),
    (index, (9,), (ti.TaichiIndexError, ti.TaichiRuntimeError)),
    (claim, (0,), (ti.TaichiAssertionError, ti.TaichiRuntimeError)),
    (index, ("one",), (ti.TaichiRuntimeTypeError,)),
):
    for error in errors:
        with pytest.raises(error):
            kernel(*args)
""",
    "algebra": """
A = ti.Matrix([[2.0, 1.0], [1.0, 3.0]])
@ti.kernel
def parts() -> ti.types.vector(5, ti.f32):
    U, S, V = ti.svd(A, ti.f32)
    R, P = ti.polar_decompose(A, ti.f32)
    values, vectors = ti.sym_eig(A, ti.f32)
    general, _ = ti.eig(A, ti.f32)
    s = ti.solve(A, ti.Vector([3.0, 4.0]), dt=ti.f32)
    return ti.Vector([S[0, 0] * S[1, 1], R[0, 0], values.sum(), general[0, 0] + general[1, 0], s.x])
assert close(parts(), [5, 1, 5, 5, 1])
assert close((A @ A.inverse()).to_numpy(), np.eye(2))
---
keys = ti.field(ti.i32, shape=8)
keys.from_numpy(np.arange(8, 0, -1, dtype=np.int32))
ti.algorithms.parallel_sort(keys)
assert keys.to_numpy().tolist() == list(range(1, 9))
ti.algorithms.PrefixSumExecutor(8).run(keys)
assert keys[7] == 36
""",
    "derivatives": """
@ti.kernel
def square():
    for i in x:
        loss[None] += x[i] ** 2
x.fill(3)
with ti.ad.Tape(loss=loss):
    square()
assert x.grad.to_numpy().tolist() == [6] * 4
ti.ad.clear_all_gradients()
assert x.grad.to_numpy().tolist() == [0] * 4
with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0, 0]):
    square()
assert loss.dual[None] == 6
---
@ti.kernel
def work():
    for i in x:
        ti.stop_grad(x)
        loss[None] += x[i] ** 2
    for i in x:
        loss[None] += x[i] * ti.stop_grad(x[i])
x.fill(3)
with ti.Tape(loss):
    work()
assert loss[None] == 72 and x.grad.to_numpy().tolist() == [3] * 4
---
@ti.kernel
def add():
    for i in x:
        loss[None] += x[i]
@ti.ad.grad_replaced
def twice():
    add()
@ti.ad.grad_for(twice)
def twice_grad():
    x.grad.fill(5)
assert ti.complex_kernel is ti.ad.grad_replaced and ti.complex_kernel_grad is ti.ad.grad_for
@ti.ad.no_grad
def nothing():
    add()
with ti.ad.Tape(loss):
    twice()
    nothing()
assert x.grad.to_numpy().tolist() == [5] * 4
""",
    "pictures": """
assert ti.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00 and ti.hex_to_rgb(0xFF0000) == (1, 0, 0)
gui = ti.GUI("test", res=(60, 40), show_gui=False)
assert {gui.ESCAPE, gui.EXIT, gui.SHIFT, gui.SPACE, gui.UP, gui.DOWN, gui.LEFT, gui.RIGHT, gui.LMB, gui.RMB} == {
    "Escape", "WMClose", "Shift", " ", "Up", "Down", "Left", "Right", "LMB", "RMB"}
assert (ti.GUI.PRESS, ti.GUI.MOTION, ti.GUI.WHEEL) == ("Press", "Motion", "Wheel")
points = np.full((2, 2), 0.5, np.float32)
gui.clear(0x000000)
gui.set_image(np.zeros((60, 40)))
gui.circles(points, radius=3, color=0xFF0000)
gui.circle((0.5, 0.5), color=0xFF0000, radius=4)
gui.lines(points, points + 0.1)
gui.line((0, 0), (1, 1))
gui.triangles(points, points + 0.1, points + 0.2)
gui.triangle((0, 0), (0, 1), (1, 0))
gui.rect((0, 1), (1, 0))
gui.arrow_field(np.ones((4, 4, 2)))
gui.point_field(np.ones((4, 4)))
gui.text("text", (0.1, 0.9))
assert gui.slider("speed", 1, 5).value == 1 and gui.button("go") == "WidgetButton_go" and gui.label("n").value == 0
gui.show()
assert gui.get_image().shape == (60, 40, 4) and gui.get_image().max() == 1
assert list(gui.get_events()) == [] and not gui.get_event() and gui.get_key_event() is None
assert not gui.is_pressed("a") and gui.get_cursor_pos() == (0, 0) and gui.running
---
window = ti.ui.Window("test", (60, 40), show_window=False)
canvas = window.get_canvas()
canvas.set_background_color((0, 0, 1))
canvas.circles(v, radius=0.1, color=(1, 0, 0))
window.show()
assert window.get_image_buffer_as_numpy()[30, 20].tolist() == [0, 0, 1, 1] and not window.is_pressed(ti.ui.SPACE)
---
import tempfile
with tempfile.TemporaryDirectory() as folder:
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    ti.tools.imwrite(image, f"{folder}/a.png")
    assert (ti.tools.imread(f"{folder}/a.png")[:, :, 0] == image).all()
    assert ti.tools.imresize(image, 6, 8).shape == (6, 8)
    video = ti.tools.VideoManager(folder)
    video.write_frame(image)
    video.make_video(mp4=False)
    mesh = ti.tools.PLYWriter(num_vertices=1)
    mesh.add_vertex_pos([0], [1], [2])
    mesh.export_ascii(f"{folder}/a.ply")
    assert open(f"{folder}/a.ply").read().endswith("0.0 1.0 2.0\\n") and open(video.get_output_filename(".gif"))
ti.tools.imshow
""",
}
