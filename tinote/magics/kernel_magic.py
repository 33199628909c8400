"""`%%kernel`: the functions of a cell become kernels; everything else in it runs as ordinary Python.

The cell is parsed with the magic's own line left blank, under the file name that IPython gave the running cell, so that
lines in errors, tracebacks and debug information are the cell's own. A kernel that is defined again under the same name
is replaced in place: whoever holds it uses the new one.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from types import CodeType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from tinote.compiler.driver import Specialisation
from tinote.compiler.frontend.python.undefined_names import hint_for, undefined_names
from tinote.compiler.requests import GRADIENT
from tinote.errors import KernelNameError, KernelSyntaxError, MagicUsageError, suggestion
from tinote.lang.kernels.func import Func
from tinote.lang.kernels.kernel import Kernel, kernel
from tinote.magics.report import show_gradient, show_times
from tinote.source import Span
from tinote.viz.explorer.widget import explore

_DECORATOR = "__tinote_make_kernel__"


@magics_class
class KernelMagics(Magics):
    """The magics of tinote."""

    shell: InteractiveShell

    @magic_arguments("%kernel")  # IPython adds one more per cent sign.
    @argument("-e", "--explore", action="store_true", help="show every stage of the compiler under the cell")
    @argument("-t", "--time", action="store_true", help="show how long each step of the compiler took")
    @argument(
        "-g", "--grad", action="store_true", help="compile the gradient too, and report what cannot be differentiated"
    )
    @argument(
        "-d",
        "--debug",
        action="store_true",
        help="more checks at run time, and the verifier after each step of the compiler",
    )
    @argument(
        "-O", dest="level", type=int, choices=(0, 1, 2, 3), default=None, help="how much LLVM optimises (default 3)"
    )
    @argument("-q", "--quiet", action="store_true", help="print nothing when all is well")
    @cell_magic("kernel")
    def kernel(self, line: str, cell: str) -> None:
        """Make kernels of the functions in this cell.

        Each function defined at the top of the cell becomes a kernel, or a device
        function if it is marked `@ti.func`; the rest of it runs as ordinary Python.
        Running a cell again replaces its kernels: whatever called them uses the new
        ones.
        """
        try:
            options = parse_argstring(KernelMagics.kernel, line)
        except UsageError as error:
            # IPython shows its own UsageError without an error message, so that validation of a notebook would let it
            # pass.
            raise MagicUsageError(f"%%kernel: {error}", hint="%%kernel? lists the options") from None
        except SystemExit:
            raise MagicUsageError(f"%%kernel: bad options '{line}'", hint="%%kernel? lists the options") from None
        overrides: dict[str, Any] = {}
        if options.debug:
            overrides["debug"] = True
        if options.level is not None:
            overrides["opt_level"] = options.level
        made = self._run(line, cell, overrides)
        kernels = [k for k in made if isinstance(k, Kernel)]
        for defined in kernels:
            if options.explore or options.time or options.grad:
                specialisation = _specialisation(defined)
                if specialisation is None:
                    name = defined.source.name
                    print(f"{name} has template parameters: it is compiled when it is called; then use %explore {name}")
                    continue
                if options.grad:
                    specialisation.code(GRADIENT)
                    if not options.quiet:
                        show_gradient(specialisation)
                if options.time:
                    show_times(specialisation, gradient=options.grad)
                if options.explore:
                    display(explore(defined, gradient=options.grad))
        if not options.quiet and made:
            print(", ".join(f"{'kernel' if isinstance(k, Kernel) else 'func'} {_name(k)}" for k in made))

    @line_magic
    def explore(self, line: str) -> None:
        """Show every stage of the compiler for a kernel: `%explore name`; `%explore --grad name` for its gradient."""
        words = line.split()
        gradient = "--grad" in words or "-g" in words
        names = [w for w in words if w not in ("--grad", "-g")]
        if len(names) != 1 or names[0].startswith("-"):
            raise MagicUsageError(
                "%explore takes the name of one kernel", hint="for its gradient: %explore --grad name"
            )
        found = self.shell.user_ns.get(names[0])
        if not isinstance(found, Kernel):
            problem = "a kernel" if names[0] in self.shell.user_ns else "defined"
            close = suggestion(names[0], [name for name, v in self.shell.user_ns.items() if isinstance(v, Kernel)])
            raise MagicUsageError(f"'{names[0]}' is not {problem}{close}")
        _specialisation(found)
        display(explore(found, gradient=gradient))

    def _run(self, line: str, cell: str, overrides: dict[str, Any]) -> list[Any]:
        shell = self.shell
        text = f"%%kernel {line}".rstrip() + "\n" + cell
        file = _running_file(shell, text)
        # IPython drops blank lines at the top.
        blank = next((at for at, row in enumerate(cell.splitlines()) if row.strip()), 0)
        try:
            tree = ast.parse("\n" * (1 + blank) + shell.transform_cell(cell), file)
            names: list[str] = []
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    names.append(node.name)
                    if not node.decorator_list:
                        marker = ast.Name(_DECORATOR, ast.Load())
                        node.decorator_list.append(ast.copy_location(marker, node))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            code = compile(tree, file, "exec", dont_inherit=True)
            value = None
            if isinstance(last, ast.Expr):
                value = compile(ast.Expression(last.value), file, "eval", dont_inherit=True)
        except SyntaxError as error:
            start, end = (max((column or 1) - 1, 0) for column in (error.offset, error.end_offset))
            span = Span(file, error.lineno or 1, start, error.end_lineno or 0, end)
            raise KernelSyntaxError(error.msg, span) from None
        namespace = shell.user_ns
        before = {name: namespace.get(name) for name in names}
        namespace[_DECORATOR] = lambda function: kernel(function).with_options(overrides)
        try:
            exec(code, namespace)
            made = [self._settle(namespace, name, before[name]) for name in names]
            if value is not None:
                shell.displayhook(eval(value, namespace))
            _warn_of_undefined_names(code, tree, namespace)
        except BaseException as error:
            _hide_frames_above(error, shell)
            raise
        finally:
            namespace.pop(_DECORATOR, None)
        return made

    @staticmethod
    def _settle(namespace: dict[str, Any], name: str, old: Any) -> Any:
        """The kernel now called `name`: the old object with the new meaning, if there was one."""
        new = namespace[name]
        if isinstance(old, Kernel) and isinstance(new, Kernel):
            old.become(new)
            namespace[name] = old
        return namespace[name]


def _warn_of_undefined_names(code: CodeType, tree: ast.Module, namespace: dict[str, Any]) -> None:
    """Say which names the cell's functions use that nothing defines yet. It is no error: a later cell may do it before
    they are called.
    """
    for name, span in undefined_names(code, tree, namespace).items():
        missing = KernelNameError(f"`{name}` is not defined yet", span, hint_for(name, namespace))
        warnings.warn_explicit(str(missing), UserWarning, span.file, span.line)


def _specialisation(defined: Kernel) -> Specialisation | None:
    """The kernel as it was compiled last, or as its annotations say; None if only a call can tell."""
    compiled = defined.specialisations()
    if compiled:
        return compiled[-1]
    return None if defined.has_templates else defined.specialise_by_types()


def _name(made: Any) -> str:
    return (
        made.source.name
        if isinstance(made, Kernel)
        else made.__tinote_function__.name
        if isinstance(made, Func)
        else getattr(made, "__name__", repr(made))
    )


def _hide_frames_above(error: BaseException, shell: Any) -> None:
    """Let IPython show the traceback from the cell on, as for an ordinary cell, and not how the magic ran it."""
    if not hasattr(error, "_render_traceback_") and error.__traceback__ is not None:
        cell_on = error.__traceback__.tb_next
        render = shell.InteractiveTB.structured_traceback
        error._render_traceback_ = lambda: render(type(error), error, cell_on, tb_offset=0)  # type: ignore[attr-defined]


def _running_file(shell: Any, text: str) -> str:
    """The name under which IPython compiled the running cell, whose text becomes what the user sees."""
    known = getattr(shell.compile, "_filename_map", {})
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in known:
        frame = frame.f_back  # type: ignore[assignment]
    file = frame.f_code.co_filename if frame is not None else shell.compile.cache(text, shell.execution_count, text)
    entry = (len(text), None, text.splitlines(keepends=True), file)
    linecache.cache[file] = entry
    getattr(linecache, "_ipython_cache", {})[file] = entry
    return file
