"""Run the reports in all packages that the two interpreters have, and record what the peers give.

Run as `python -m tests.museum --peer-python PATH [WORD …]`. Each report runs in a process of its own, since some end
it; `--child PACKAGE NAME FUNCTION` is that process.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from benchmarks.runners import ROOT, environment
from tests.museum.exhibits import PACKAGES, RECORD, Report, as_expected, call, reports, verdict

PATIENCE = 300
"""The seconds that a package has for one report."""
MODULES = {"warp": "warp", "jax": "jax"}
DISTRIBUTIONS = {"warp": "warp-lang"}


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; returns 1 if tinote gives anything but what it should."""
    described = argparse.ArgumentParser(prog="python -m tests.museum", description=__doc__)
    described.add_argument(
        "words", nargs="*", metavar="WORD", help="only reports with one of these words in their names"
    )
    described.add_argument("--peer-python", metavar="PATH", help="an interpreter that has the peers; records them")
    described.add_argument("--package", choices=PACKAGES, action="append", help="only this one")
    options = described.parse_args(arguments)
    chosen = [r for r in reports() if not options.words or any(word in r.name for word in options.words)]
    known: dict[str, Any] = json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    failed = 0
    for package in options.package or PACKAGES:
        interpreter = sys.executable if package == "tinote" else options.peer_python
        if interpreter is None:
            continue
        found: dict[str, Any] = {}
        for report in chosen:
            if report.program(package):
                found[report.name] = run(interpreter, package, report)
                given = found[report.name].get("value", found[report.name].get("error", "ended its process"))
                print(
                    f"{package:<10} {report.name:<18} {verdict(report, found[report.name]):<8} {str(given)[:90]}",
                    flush=True,
                )
                failed += package == "tinote" and not as_expected(report, found[report.name])
        if package != "tinote" and found:
            entry = known.setdefault(package, {"version": "", "results": {}})
            entry["version"] = version_of(interpreter, package)
            entry["results"] |= found
    existing = {r.name for r in reports()}
    for entry in known.values():
        entry["results"] = {name: result for name, result in sorted(entry["results"].items()) if name in existing}
    RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
    return int(bool(failed))


def run(interpreter: str, package: str, report: Report) -> dict[str, Any]:
    """What a package gives for a report, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="museum-") as folder:
        file = Path(folder) / "result"
        command = [
            interpreter,
            "-m",
            "tests.museum",
            "--child",
            package,
            report.name,
            str(report.program(package)),
            str(file),
        ]
        variables = environment({"TI_OFFLINE_CACHE": "0", "TI_LOG_LEVEL": "error", "WARP_CACHE_PATH": folder}, ROOT)
        try:
            done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"no result in {PATIENCE} s"}
        if file.is_file():
            return json.loads(file.read_text("utf-8"))
        if done.returncode >= 0:
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-2000:])
        return {"crashed": done.returncode}


def version_of(interpreter: str, package: str) -> str:
    """The version of a package as its distribution states it."""
    code = f"from importlib.metadata import version; print(version({DISTRIBUTIONS.get(package, package)!r}))"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def child(package: str, name: str, function: str, file: str) -> None:
    """Run one report with one package and write the result."""
    module = importlib.import_module(MODULES.get(package, package))
    if package == "jax":
        module.config.update("jax_enable_x64", True)
    if package == "quadrants":
        # What its manual asks for where loops carry values: without it, they are refused.
        module.init = functools.partial(module.init, ad_stack_experimental_enabled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = {"value": call(name, function, module)}
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            result = {"error": f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]}
    Path(file).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:6])
    else:
        sys.exit(main(sys.argv[1:]))
