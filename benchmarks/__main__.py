"""`python -m benchmarks`: measure, print a table for each case, and write JSON if asked."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contract import Case
from benchmarks.harness import Row, Settings, measure
from benchmarks.peers import PEERS
from benchmarks.report import as_json, machine, table, tell
from benchmarks.runners import Interpreters
from benchmarks.workloads import WORKLOADS, restrict

__all__ = ["main"]

INTERRUPTED = 130

IN_A_BROWSER = ("frames", "explorer", "pages")
"""Benchmarks with options of their own, which need the browser tests' extra."""

COMMANDS = {
    "agreement": "agreement.main",
    "compare": "compare",
    "gpu": "gpu",
    "gradients": "gradients.report",
    "sweeps": "sweeps",
    **{name: name for name in IN_A_BROWSER},
}
"""First words with a `main` of their own, in the module named here. The report on gradients measures the workload of
that name.
"""


def main(arguments: Sequence[str] | None = None, workloads: Mapping[str, tuple[Case, ...]] = WORKLOADS) -> int:
    """Run what the command line asks for; return 1 if any contender failed or was wrong, else 0."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] and given[0] in COMMANDS:
        return importlib.import_module(f"benchmarks.{COMMANDS[given[0]]}").main(given[1:])
    described = parser(workloads)
    options = described.parse_args(arguments)
    if unknown := [name for name in options.workloads if name not in workloads]:
        described.error(f"no workload {unknown[0]!r}; there are {', '.join([*workloads, *COMMANDS])}")
    if options.json:
        try:
            options.json.open("a").close()  # Now, and not when all has been measured.
        except OSError as error:
            described.error(f"cannot write {options.json}: {error.strerror}")
    settings = Settings(options.rounds, options.slice / 1000, Interpreters(options.peer_python, dict(options.python)))
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}, Python {about['python']}")
    print(about["c_compiler"] or "no C compiler")
    print(f"minimum of {settings.rounds} rounds of {options.slice:g} ms (fewer where every round is a fresh process)")
    results: list[tuple[Case, list[Row]]] = []
    for name in options.workloads or workloads:
        for case in workloads[name]:
            chosen = restrict(case, options.only)
            if not chosen.contenders:
                continue
            rows = measure(chosen, settings, tell)
            tell("")
            print(f"\n{table(chosen, rows)}", flush=True)
            results.append((chosen, rows))
    if options.json:
        options.json.write_text(json.dumps(as_json(results, settings), indent=1) + "\n", encoding="utf-8")
    return int(any(row.failed or row.wrong for _, rows in results for row in rows))


def parser(workloads: Mapping[str, tuple[Case, ...]]) -> argparse.ArgumentParser:
    """Return the command line's description."""
    described = argparse.ArgumentParser(
        prog=os.environ.get("TINOTE_PROGRAM", "python -m benchmarks"),
        description=__doc__,
        epilog=f"`compare COMMIT` holds this tree against another; `gradients` writes the report on derivatives; "
        f"`agreement` runs programs of the dialect in Taichi, too; `sweeps` measures many runs, `gpu` a GPU; "
        f"{' and '.join(IN_A_BROWSER)} measure in a browser. "
        "`python -m benchmarks compare --help` tells more.",
    )
    described.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"which to run: {', '.join(workloads)} (default: all)"
    )
    described.add_argument(
        "--only", action="append", metavar="NAME", help="only contenders whose name begins with this word (repeatable)"
    )
    described.add_argument("--rounds", type=positive, default=20, help="slices a contender gets (default: %(default)s)")
    described.add_argument(
        "--slice", type=float, default=50.0, metavar="MS", help="length of a slice (default: %(default)g ms)"
    )
    described.add_argument("--json", type=Path, metavar="OUT", help="write everything measured to this file")
    described.add_argument(
        "--peer-python",
        metavar="PATH",
        default=os.environ.get("BENCHMARKS_PEER_PYTHON"),
        help="interpreter for the peers (default: $BENCHMARKS_PEER_PYTHON, or the one that runs this, as tinote does)",
    )
    described.add_argument(
        "--python",
        action="append",
        type=assignment,
        default=[],
        metavar="NAME=PATH",
        help=f"interpreter for one package, of {', '.join(PEERS)} (repeatable)",
    )
    return described


def positive(text: str) -> int:
    """Read a number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def assignment(text: str) -> tuple[str, str]:
    """Read NAME=PATH, where NAME is a package of the table."""
    name, equals, path = text.partition("=")
    if not equals or name not in PEERS:
        raise argparse.ArgumentTypeError(f"expected NAME=PATH with NAME one of {', '.join(PEERS)}")
    return name, path


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
