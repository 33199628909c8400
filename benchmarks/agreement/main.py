"""`python -m benchmarks agreement`: run the programs in both packages, and print by subject where they agree."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.agreement.child import SUBJECTS, programs_of
from benchmarks.agreement.compare import difference
from benchmarks.agreement.reasons import reason_of
from benchmarks.runners import ROOT, Interpreters, environment

__all__ = ["RECORD", "judged", "main", "results_of"]

#: What Taichi 1.7.4 gave, for tests and for machines that do not have it.
RECORD = Path(__file__).with_name("taichi.json")
#: The seconds that a process has for all of its programs.
PATIENCE = 900


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if a program differs without a reason or agrees despite one."""
    options = _parser().parse_args(arguments)
    chosen = [f"{s}.{name}" for s in SUBJECTS for name in programs_of(s)]
    if options.programs:
        chosen = [name for name in chosen if any(word in name for word in options.programs)]
    interpreters = Interpreters(options.peer_python)
    ours = results_of("tinote", chosen, interpreters)
    if options.peer_python or not RECORD.is_file():
        theirs = results_of("taichi", chosen, interpreters)
    else:
        print(f"taichi: as recorded in {RECORD.name}; `--peer-python PATH` runs it")
        theirs = json.loads(RECORD.read_text(encoding="utf-8"))
    if options.record:
        known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
        known = {name: result for name, result in (known | theirs).items() if _exists(name)}
        RECORD.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    rows = [(name, *judged(name, ours[name], theirs[name])) for name in chosen]
    width = max([len(name) for name, _, _ in rows], default=0)
    for name, verdict, why in rows:
        print(f"{name:<{width}}  {verdict:<8}  {why}".rstrip())
    counts = {verdict: sum(v == verdict for _, v, _ in rows) for verdict in ("agrees", "differs", "WRONG")}
    print(f"\n{len(rows)} programs: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    return int(bool(counts["WRONG"]))


def judged(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str]:
    """The verdict on a program, and its reason: it agrees, differs for a stated reason, or one of both is wrong."""
    subject, _, function = name.partition(".")
    reason = reason_of(programs_of(subject)[function])
    found = difference(ours, theirs)
    if not found:
        return ("WRONG", f"agrees, and states a reason: {reason}") if reason else ("agrees", "")
    return ("differs", reason) if reason and "crashed" not in ours else ("WRONG", found)


def results_of(package: str, names: Sequence[str], interpreters: Interpreters) -> dict[str, dict[str, Any]]:
    """What programs give with a package. One that ends its process is `crashed`, and the next gets another process."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="agreement-") as folder:
        file = Path(folder) / "results"
        left = list(names)
        while left:
            file.write_text("")
            command = [interpreters.of(package), "-m", "benchmarks.agreement.child", package, str(file), *left]
            variables = environment({"TI_OFFLINE_CACHE": "0", "TI_LOG_LEVEL": "error", "TMPDIR": folder}, ROOT)
            done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, timeout=PATIENCE, check=False)
            results = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            found |= {result["program"]: result for result in results}
            left = left[len(results) :]
            if left:
                if done.returncode >= 0:  # no crash: the package is not there, or the child itself is at fault
                    raise RuntimeError(done.stderr.decode("utf-8", "replace")[-2000:])
                found[left.pop(0)] = {"crashed": done.returncode}
                print(f"{package} ended with status {done.returncode}", file=sys.stderr)
    return found


def _exists(name: str) -> bool:
    subject, _, function = name.partition(".")
    return subject in SUBJECTS and function in programs_of(subject)


def _parser() -> argparse.ArgumentParser:
    described = argparse.ArgumentParser(prog="python -m benchmarks agreement", description=__doc__)
    described.add_argument("programs", nargs="*", metavar="WORD", help="only programs with one of these words")
    described.add_argument("--peer-python", metavar="PATH", help="an interpreter that has taichi 1.7.4")
    described.add_argument("--record", action="store_true", help=f"keep what taichi gives in {RECORD.name}")
    return described
