"""`%%kernel`: the functions of a cell become kernels; everything else in it runs as ordinary Python.

The cell is parsed with the magic's own line left blank, under the file name that IPython gave the running cell, so that
lines in errors, tracebacks and debug information are the cell's own. A kernel that is defined again under the same name
is replaced in place: whoever holds it uses the new one.
"""

from __future__ import annotations

import ast
import linecache
import sys
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from tinote.errors import KernelSyntaxError, MagicUsageError
from tinote.lang.kernel import Func, Kernel, kernel
from tinote.magics.report import show_times
from tinote.source import Span
from tinote.viz.explorer import explore

__all__ = ["KernelMagics", "complete_options"]

_OPTIONS = ("--explore", "--time", "--grad", "--debug", "-O0", "-O1", "-O2", "-O3", "--quiet")
_DECORATOR = "__tinote_make_kernel__"


@magics_class
class KernelMagics(Magics):
    """The magics of tinote."""

    shell: InteractiveShell

    @magic_arguments()
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

        Each function defined at the top of the cell becomes a kernel, or a device function if it is marked `@ti.func`;
        the rest of the cell runs as ordinary Python.
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
            if (options.explore or options.time or options.grad) and not defined.has_templates:
                specialisation = defined.specialise_by_types()
                if options.grad:
                    specialisation.gradient()
                if options.time:
                    show_times(specialisation, gradient=options.grad)
                if options.explore:
                    display(explore(defined, gradient=options.grad))
            elif options.explore or options.time or options.grad:
                print(f"{defined.source.name} has template parameters: it is compiled when it is first called")
        if not options.quiet and made:
            print(", ".join(f"{'kernel' if isinstance(k, Kernel) else 'func'} {_name(k)}" for k in made))

    @line_magic
    def explore(self, line: str) -> None:
        """Show every stage of the compiler for a kernel: `%explore name`, or `%explore --grad name` for its gradient."""
        words = line.split()
        gradient = "--grad" in words
        names = [w for w in words if w != "--grad"]
        if len(names) != 1:
            raise MagicUsageError(
                "%explore takes the name of one kernel", hint="%explore --grad name shows its gradient"
            )
        found = self.shell.user_ns.get(names[0])
        if not isinstance(found, Kernel):
            raise MagicUsageError(f"'{names[0]}' is not a kernel")
        display(explore(found, gradient=gradient))

    def _run(self, line: str, cell: str, overrides: dict[str, Any]) -> list[Any]:
        shell = self.shell
        text = f"%%kernel {line}".rstrip() + "\n" + cell
        file = _running_file(shell, text)
        try:
            tree = ast.parse("\n" + cell, file)
        except SyntaxError as error:
            span = Span(
                file,
                error.lineno or 1,
                max((error.offset or 1) - 1, 0),
                error.end_lineno or 0,
                max((error.end_offset or 1) - 1, 0),
            )
            raise KernelSyntaxError(error.msg, span) from None
        names: list[str] = []
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names.append(node.name)
                if not node.decorator_list:
                    marker = ast.Name(_DECORATOR, ast.Load())
                    node.decorator_list.append(ast.copy_location(marker, node))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        namespace = shell.user_ns
        before = {name: namespace.get(name) for name in names}
        namespace[_DECORATOR] = lambda function: kernel(function).with_options(overrides)
        try:
            exec(compile(tree, file, "exec", dont_inherit=True), namespace)
            made = [self._settle(namespace, name, before[name]) for name in names]
            if last is not None:
                assert isinstance(last, ast.Expr)
                shell.displayhook(eval(compile(ast.Expression(last.value), file, "eval", dont_inherit=True), namespace))
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


def _name(made: Any) -> str:
    return (
        made.source.name
        if isinstance(made, Kernel)
        else made.__tinote_function__.name
        if isinstance(made, Func)
        else getattr(made, "__name__", repr(made))
    )


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


def complete_options(shell: Any, event: Any) -> list[str]:
    """The options of `%%kernel` that begin with what was typed."""
    return [o for o in _OPTIONS if o.startswith(event.symbol)]
