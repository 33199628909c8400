"""The reference: every public name with its docstring, in NumPy's format and Markdown.

A class that has methods for the package's own use lists what is for users in its docstring, under `Methods` and
`Attributes`, which holds for the classes that inherit from it; of other classes all methods are public.
"""

from __future__ import annotations

import enum
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import tinote as ti
from manual.docstrings import Docstring
from manual.places import write
from tinote.ir.types import Scalar
from tinote.lang import ops
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.data.structs import StructType
from tinote.lang.data.tree import Axes
from tinote.lang.data.types import MatrixType
from tinote.lang.kernels.kernel import Kernel
from tinote.lang.session.state import Arch
from tinote.lang.sweeps.ensemble import Ensemble

MODULES: dict[str, ModuleType] = {
    "ti": ti,
    "ti.ad": ti.ad,
    "ti.viz": ti.viz,
    "ti.math": ti.math,
    "ti.linalg": ti.linalg,
    "ti.integrate": ti.integrate,
    "ti.fft": ti.fft,
    "ti.geometry": ti.geometry,
    "ti.multigrid": ti.multigrid,
    "ti.sampling": ti.sampling,
    "ti.spatial": ti.spatial,
    "ti.nn": ti.nn,
    "ti.io": ti.io,
    "ti.algorithms": ti.algorithms,
    "ti.types": ti.types,
    "ti.units": ti.units,
    "ti.graph": ti.graph,
    "ti.ui": ti.ui,
    "ti.tools": ti.tools,
    "ti.profiler": ti.profiler,
}
RETURNED: dict[str, type] = {
    "Kernel": Kernel,
    "CapturedFunction": CapturedFunction,
    "Ensemble": Ensemble,
    "StructType": StructType,
}
"""Classes without a public name, whose objects calls return."""
MADE_ELSEWHERE = {"ArgKind", "Field", "Graph", "Layout", "MatrixField", "MatrixNdarray", "Ndarray", "ScalarField"}
MADE_ELSEWHERE |= {"ScalarNdarray", "StructField", "VectorNdarray", "Level", "Canvas", "Gui", "Checkpoints", "Finding"}
MADE_ELSEWHERE |= {"HorizonReport", "NanReport", "ScipyProblem", "SweepReport", "Violation", "Pointer", "GradientView"}
MADE_ELSEWHERE |= {"RuleView", "Explorer", "ProfileTable", "Unit"}
"""Public classes whose objects calls return: programs read their attributes, and do not make them."""
FENCE = "::::::"
CONSTANTS = (int, float, str, Scalar, Arch, Axes, MatrixType, ModuleType, ti.units.Unit)


def public(module: ModuleType) -> dict[str, Any]:
    """The public names of a module."""
    names = dict.fromkeys([*module.__all__, *(ops.__all__ if module is ti else ())])
    return {name: getattr(module, name) for name in names}


def write_reference(sources: Path) -> None:
    """Write the reference as sources of the site."""
    for owner, module in MODULES.items():
        write(sources / f"{owner}.md", _module(owner, module))
    objects = [_object(name, value) for name, value in RETURNED.items()]
    head = ["# Objects that calls return", "```{py:currentmodule} None\n```"]
    write(sources / "objects.md", "\n\n".join([*head, *objects]) + "\n")
    tree = "\n".join(["```{toctree}", ":maxdepth: 1", *MODULES, "objects", "```"])
    head = "# Reference\n\nEvery public name with its docstring, after `import tinote as ti`.\n\n## By topic\n"
    topics = linked((sources.parent / "names.md").read_text("utf-8"))
    write(sources / "index.md", f"{head}\n{topics}\n## By module\n\n{tree}\n")


def linked(topics: str) -> str:
    """The table of names by topic, with each name that the reference has as a link to it."""
    known = {f"{owner}.{name}" for owner, module in MODULES.items() for name in public(module)}
    return re.sub(r"`(ti[\w.]*)`", lambda name: f"{{py:obj}}{name[0]}" if name[1] in known else name[0], topics)


def _module(owner: str, module: ModuleType) -> str:
    names = public(module)
    parts = [f"# `{owner}`", f"```{{py:currentmodule}} {owner}\n```", text_of(module)]
    plain = sorted(name for name, value in names.items() if isinstance(value, CONSTANTS))
    for title, wanted in (("Functions", False), ("Classes", True)):
        found = [name for name in names if name not in plain and isinstance(names[name], type) is wanted]
        if found:
            parts.append(f"## {title}")
            parts += [_object(name, names[name]) for name in sorted(found, key=str.lower)]
    values = [name for name in plain if not isinstance(names[name], ModuleType)]
    if values:
        parts.append("## Types and constants")
        parts += [f"{FENCE}{{py:data}} {name}\n{FENCE}" for name in values]
    return "\n\n".join(filter(None, parts)) + "\n"


def text_of(value: Any) -> str:
    """A docstring as Markdown."""
    return Docstring(getattr(value, "__doc__", None)).markdown()


def _object(name: str, value: Any) -> str:
    if not isinstance(value, type):
        return _directive("function", f"{name}{signature(value)}", text_of(value))
    kind = "exception" if issubclass(value, BaseException) else "class"
    is_called = not issubclass(value, BaseException | enum.Enum) and not is_made_elsewhere(value)
    made = signature(value) if is_called else ""
    parts = [text_of(value), *[_member(value, member) for member in members(value)]]
    return _directive(kind, name + made, "\n\n".join(filter(None, parts)), FENCE + ":")


def is_made_elsewhere(value: type) -> bool:
    """Whether programs get objects of a class from calls, and make none themselves."""
    return value in RETURNED.values() or value.__name__ in MADE_ELSEWHERE


def members(owner: type) -> dict[str, Any]:
    """The public methods and properties of a class that the package defines, as they stand in it."""
    lists = {one: _listed(one) for one in owner.__mro__ if one.__module__.startswith("tinote")}
    found: dict[str, Any] = {}
    for name in sorted(dir(owner)):
        value = member_of(owner, name)
        if name.startswith("_") or not any(name in vars(one) for one in lists) or function_of(value) is None:
            continue
        if any(name in listed for listed in lists.values()) or not any(
            listed and hasattr(one, name) for one, listed in lists.items()
        ):
            found[name] = value
    return found


def member_of(owner: type, name: str) -> Any:
    """A method or property as it stands in a class, without what lets members of its name go first."""
    value = inspect.getattr_static(owner, name)
    return getattr(value, "ours", value) if type(value).__name__ == "behind_members" else value


def _listed(owner: type) -> set[str]:
    """The methods and attributes that the docstring of a class lists, if it does."""
    names = Docstring(vars(owner).get("__doc__")).names
    return {*names["Methods"], *names["Attributes"]}


def function_of(value: Any) -> Any:
    """The function of a method or a property, if it is one."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    function = value.fget if isinstance(value, property) else getattr(value, "func", function)
    return function if inspect.isfunction(function) else None


def is_property(value: Any) -> bool:
    """Whether a member, as it stands in its class, is read without a call."""
    return function_of(value) not in (None, value) and not isinstance(value, classmethod | staticmethod)


def type_of(owner: type, name: str) -> str:
    """The type of a property, as the class's list of attributes says, or as it is annotated."""
    for one in owner.__mro__:
        for entry in Docstring(vars(one).get("__doc__")).entries("Attributes"):
            if name in entry.names and " : " in entry.head:
                return entry.head.partition(" : ")[2]
    return str(function_of(member_of(owner, name)).__annotations__.get("return", ""))


def docstring_of(owner: type, name: str) -> Docstring:
    """The docstring of a method or property, its own or an inherited one."""
    return Docstring(inspect.getdoc(getattr(owner, name)))


def _member(owner: type, name: str) -> str:
    value = member_of(owner, name)
    function, text = function_of(value), docstring_of(owner, name).markdown()
    if is_property(value):
        return _directive("property", name, f"[{type_of(owner, name)}]{{.tinote-type}}\n\n{text}")
    shown = signature(function, skip=not isinstance(value, staticmethod))
    option = next((f":{k}:\n" for k in ("classmethod", "staticmethod") if type(value).__name__ == k), "")
    return _directive("method", name + shown, option + "\n" + text if option else text)


def _directive(kind: str, head: str, text: str, fence: str = FENCE) -> str:
    return f"{fence}{{py:{kind}}} {head}\n{text}\n{fence}"


def signature(value: Any, skip: bool = False) -> str:
    """How it is called, without annotations: docstrings give the types. `skip`: without the first parameter."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "()"
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    text = str(inspect.Signature(parameters[1:] if skip else parameters))
    return re.sub(r"<[^<>]*>", "…", text)
