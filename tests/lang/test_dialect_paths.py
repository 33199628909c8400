"""The paths under which existing programs import the dialect's names: each leads to what the package itself has."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types

import pytest

import tinote as ti

#: path: names that are `ti`'s own, and those that only this path has
PATHS: dict[str, tuple[str, str]] = {
    "tinote._lib.core": ("", "get_max_num_indices with_cuda with_vulkan"),
    "tinote.ad": ("Tape", "FwdMode grad_for grad_replaced no_grad"),
    "tinote.algorithms": ("", "parallel_sort PrefixSumExecutor"),
    "tinote.lang.enums": ("Layout", ""),
    "tinote.lang.exception": (
        "TaichiAssertionError TaichiCompilationError TaichiIndexError TaichiNameError TaichiRuntimeError "
        "TaichiRuntimeTypeError TaichiSyntaxError TaichiTypeError",
        "",
    ),
    "tinote.lang.field": ("Field MatrixField ScalarField", ""),
    "tinote.lang.impl": (
        "FieldsBuilder axes field grouped ndarray one root static static_assert static_print stop_grad zero",
        "current_cfg",
    ),
    "tinote.lang.kernel_impl": ("data_oriented func kernel pyfunc real_func", ""),
    "tinote.lang.matrix": ("Matrix MatrixField MatrixNdarray Vector VectorNdarray", "MatrixType"),
    "tinote.lang.matrix_ops": (
        "all any cast cross determinant dot inverse max min outer_product sum trace transpose",
        "",
    ),
    "tinote.lang.misc": ("cfg is_arch_supported", "get_host_arch_list"),
    "tinote.lang.ops": ("abs atomic_add cast exp max select sin sqrt", ""),
    "tinote.lang.snode": ("SNode", ""),
    "tinote.lang.struct": ("Struct StructField dataclass", "StructType"),
    "tinote.lang.util": ("", "cook_dtype has_pytorch to_numpy_type"),
    "tinote.linalg": ("eig polar_decompose solve svd sym_eig", ""),
    "tinote.math": ("", "vec2 vec3 mat3 clamp mix pi"),
    "tinote.profiler": ("", "print_kernel_profiler_info"),
    "tinote.tools": ("PLYWriter VideoManager imread imresize imshow imwrite", ""),
    "tinote.types.annotations": ("template", "sparse_matrix_builder"),
    "tinote.types.compound_types": ("", "matrix struct vector"),
    "tinote.types.enums": ("Layout", ""),
    "tinote.types.ndarray_type": ("", "ndarray"),
    "tinote.types.primitive_types": ("f32 i32 u1", ""),
    "tinote.types.utils": ("", "is_integral is_real is_signed"),
    "tinote.types": ("f32 i32 template u1", "matrix ndarray struct vector"),
    "tinote.ui": ("", "Window"),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_names_what_the_package_has(path: str) -> None:
    shared, own = (names.split() for names in PATHS[path])
    parent, _, last = path.rpartition(".")
    module = ti._lib.core if path == "tinote._lib.core" else importlib.import_module(path)
    for name in shared:
        assert getattr(module, name) is getattr(ti, name)
    for name in own:
        assert getattr(module, name) is not None
    assert getattr(importlib.import_module(parent), last) is module, "attribute of the module around it"


def test_every_path_of_lang_is_in_the_table() -> None:
    assert sorted(f"tinote.lang.{name}" for name in ti.lang.__all__) == [
        p for p in PATHS if p.startswith("tinote.lang.")
    ]


def test_a_path_is_there_without_an_import_of_its_own() -> None:
    names = [path.removeprefix("tinote.") for path in PATHS if path.startswith("tinote.lang.")]
    program = f"import tinote as ti\nfor name in {names}:\n    assert eval('ti.' + name).__all__"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("path", "name", "what"),
    [
        ("tinote.lang.snode", "get_addr", "`ti.lang.snode.get_addr`: addresses in kernels are left out"),
        ("tinote.lang.impl", "mesh_local", "`ti.lang.impl.mesh_local`: meshes are left out"),
        ("tinote.lang", "mesh", "`ti.lang.mesh`: meshes are left out"),
        ("tinote", "get_addr", "`ti.get_addr`: addresses in kernels are left out"),
    ],
)
def test_what_is_left_out_is_said_with_what_to_use(path: str, name: str, what: str) -> None:
    found = getattr(importlib.import_module(path), name)
    with pytest.raises(ti.errors.NotAvailableError) as caught:
        found()
    assert what in str(caught.value) and caught.value.hint


@pytest.mark.parametrize("path", ["tinote.aot", "tinote.lang.mesh", "tinote.lang.simt", "tinote.types.quant"])
def test_modules_that_are_left_out_may_be_imported(path: str) -> None:
    parent, _, name = path.rpartition(".")
    found = importlib.import_module(path)
    assert getattr(importlib.import_module(parent), name) is found
    program = f"import {path} as a\nfrom {path} import anything\nfrom {parent} import {name}\nassert a is {name}"
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(ti.errors.NotAvailableError, match=rf"{name}.anything`: "):
        found.anything(3)


def test_what_is_left_out_may_be_named_and_asked_for() -> None:
    class Scene:
        mesh: ti.Mesh
        image: ti.Texture | None = None
        kinds = (ti.TriMesh, ti.get_addr, ti.Format.r32f, ti.extension.sparse, ti.types.quant)

    def draw(image: ti.types.rw_texture(num_dimensions=2, fmt=ti.Format.rgba8, lod=0)) -> ti.Mesh:  # pyright: ignore
        return image

    assert draw(3) == 3 and Scene.image is None and not isinstance(3, ti.Mesh)
    with pytest.raises(ti.errors.NotAvailableError, match=r"`ti.Mesh`: meshes are left out"):
        types.new_class("Own", (ti.Mesh,))

    ti.init()

    @ti.kernel
    def untaken(n: ti.i32) -> ti.i32:
        if ti.static(False):
            ti.activate(n, [1])
        return n

    assert untaken(2) == 2

    @ti.kernel
    def paint(image: ti.types.texture(num_dimensions=2), n: ti.i32):  # pyright: ignore
        pass

    with pytest.raises(ti.errors.NotAvailableError, match=r"`ti.types.texture`: textures are left out") as caught:
        paint(None, 1)
    assert caught.value.span.line == paint.__wrapped__.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("name", "what"), [("simt", "instructions of one kind of GPU"), ("aot", "ahead-of-time modules")]
)
def test_modules_that_are_left_out_may_be_named(name: str, what: str) -> None:
    for owner in (ti, ti.lang):
        found = getattr(owner, name).part.function  # as a module of a program names it
        with pytest.raises(ti.errors.NotAvailableError, match=rf"{name}.part.function`: {what} are left out"):
            found()
    found = getattr(ti, name).part.function
    ti.init()

    @ti.kernel
    def run():
        found()

    with pytest.raises(ti.errors.NotAvailableError, match="are left out") as caught:
        run()
    assert caught.value.span.line == run.__wrapped__.__code__.co_firstlineno + 2


def test_a_name_that_there_never_was() -> None:
    with pytest.raises(AttributeError, match=r"module 'tinote\.lang\.matrix' has no attribute 'Tensor'"):
        _ = ti.lang.matrix.Tensor
