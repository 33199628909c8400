"""The `tinote` command: the tutorials in JupyterLab, a notebook without a browser, a notebook as a page that runs, a
kernel's stages as a page, the disk cache, diagnostics of the machine, and the benchmarks.

A command's module is loaded when it is called: those that open notebooks take seconds, and `--help` must not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tinote import __version__
from tinote.cli.status import INTERRUPTED, UNUSABLE, Unusable, existing_file, existing_target
from tinote.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tinote.cli import bench, cache, doctor, explore, lab, page, run
else:
    bench = lazy("tinote.cli.bench")
    cache = lazy("tinote.cli.cache")
    doctor = lazy("tinote.cli.doctor")
    explore = lazy("tinote.cli.explore")
    lab = lazy("tinote.cli.lab")
    page = lazy("tinote.cli.page")
    run = lazy("tinote.cli.run")

_COMMANDS = {
    "bench": bench,
    "cache": cache,
    "doctor": doctor,
    "explore": explore,
    "lab": lab,
    "page": page,
    "run": run,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status: 0 done, 1 failed, 2 not usable as it was called."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    if given[:1] == ["bench"]:
        # The benchmarks have options of their own, and tell of them.
        rest = given[1:]
        options = argparse.Namespace(command="bench", arguments=rest[1:] if rest[:1] == ["--"] else rest)
    else:
        options = parser.parse_args(given)
    try:
        # What is not there is reported before the command's libraries are loaded, which takes seconds.
        if options.command in ("run", "page"):
            existing_file(options.notebook, folders=True)
        elif options.command == "explore":
            existing_target(options.target)
        return _loaded(options.command)(options)
    except Unusable as error:
        print(f"tinote {options.command}: {error}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _loaded(command: str) -> Callable[[argparse.Namespace], int]:
    """What runs a command, with its libraries loaded.

    The validator of notebooks makes parsers of web addresses, where it finds a library for that. It takes a second,
    longer than all the rest, and no notebook is asked for an address: meanwhile there is no such library.
    """
    addresses = "rfc3987_syntax"
    hidden = addresses not in sys.modules
    if hidden:
        sys.modules[addresses] = cast("Any", None)
    try:
        return _COMMANDS[command].main
    finally:
        if hidden:
            del sys.modules[addresses]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinote",
        description="Differentiable simulation kernels in notebooks: tutorials, pages, diagnostics.",
        epilog="`tinote COMMAND --help` says more. The exit status is 0 when all went well, 1 when something failed "
        "and 2 when the command cannot be used as it was called.",
    )
    parser.add_argument("--version", action="version", version=f"tinote {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    opened = commands.add_parser(
        "lab",
        help="open the tutorials in JupyterLab",
        description="Open copies of the tutorials in JupyterLab. Files that are there already are kept.",
    )
    opened.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="where the copies are (default: ./tinote-notebooks)"
    )
    opened.add_argument("--no-browser", action="store_true", help="start the server and print its address")
    opened.add_argument("--port", type=port, help="the port of the server (default: the first free one from 8888)")

    executed = commands.add_parser(
        "run",
        help="execute a notebook and export static HTML, with pictures of its views",
        description="Execute a notebook without a browser and write an HTML page with pictures of its views. The exit "
        "status is 1 when a cell fails and 2 when the notebook cannot be read or the page cannot be written.",
    )
    executed.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    executed.add_argument("--html", type=Path, metavar="OUT", help="the page (default: NOTEBOOK with the suffix .html)")
    executed.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="the longest a cell may take (default: no limit)"
    )

    paged = commands.add_parser(
        "page",
        help="execute a notebook and export one HTML page in which its live views run",
        description="Execute a notebook without a browser and write one HTML page in which its live views run, from "
        "the disk, without Python, server or network. Views that cannot run there become images; the reason is "
        "printed. The exit status is 1 when a cell fails and 2 when the notebook cannot be read or the page cannot be "
        "written.",
    )
    paged.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    paged.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the page (default: NOTEBOOK with the suffix .html)"
    )
    paged.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="the longest a cell may take (default: no limit)"
    )

    explored = commands.add_parser(
        "explore",
        help="write an HTML page with every stage of a kernel",
        description="Run a Python file or a notebook and write an HTML page with every stage of one of its kernels, "
        "from its source to assembly. A Python file is imported, so that its part for `__main__` does not run. What it "
        "prints goes to standard error.",
    )
    explored.add_argument(
        "target",
        metavar="FILE:KERNEL",
        help="a .py or .ipynb file and the name of a kernel in it, or of a method (object.kernel)",
    )
    explored.add_argument("--html", type=Path, metavar="OUT", help="the page (default: KERNEL.html)")
    explored.add_argument("--grad", action="store_true", help="open the page on the kernel's gradient")
    explored.add_argument("--main", action="store_true", help="run the part for `__main__` too")

    kept = commands.add_parser(
        "cache",
        help="show or remove the machine code that is kept for later sessions",
        description="Show or remove the machine code that is kept for later sessions. TINOTE_CACHE_DIR names its "
        "folder, TINOTE_CACHE_LIMIT bounds its size (256M if not set; 0 switches it off). Machines of several kinds "
        "that share one find each other's entries where TINOTE_CPU names the same level of processors for all, such as "
        "x86-64-v3.",
    )
    kept.add_argument("action", choices=("info", "clear"), help="what to do")

    commands.add_parser(
        "doctor",
        help="show the CPU, the compiler and the front ends that were found",
        description="Show the CPU, the compiler and the front ends that were found. The exit status is 1 when the "
        "compiler does not work here. TINOTE_CPU names the processor to compile for: native or a lower level "
        "such as x86-64-v2 or x86-64-v3.",
    )

    measured = commands.add_parser(
        "bench",
        help="run the benchmarks of a source checkout",
        description="Run the benchmarks of a source checkout: tinote, each peer that is installed, and C. All "
        "arguments are theirs; `tinote bench -- --help` lists them.",
    )
    measured.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="such as `mpm --rounds 5`")
    return parser


def port(text: str) -> int:
    """Reads an argument; its name is what `argparse` calls the value when that is not a number."""
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is not a port: they go from 1 to 65535")
    return number


def seconds(text: str) -> float:
    """Likewise."""
    found = float(text)
    if not found > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a time limit: it must be more than 0")
    return found
