"""The shared test machinery itself: golden files, and skips that fail in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")


def run_pytest(folder: Path, *arguments: str, ci: bool = False) -> subprocess.CompletedProcess[str]:
    """pytest in a child process, on a folder that has our conftest; with no plugins but those of the arguments."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    environment = {**os.environ, "CI": "true" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def write_test(folder: Path, text: str) -> None:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_sample.py").write_text(text, encoding="utf-8")


def test_golden_writes_compares_and_reports_a_difference(tmp_path: Path) -> None:
    write_test(tmp_path, "def test_text(golden):\n    golden('one\\ntwo')\n")
    missing = run_pytest(tmp_path)
    assert missing.returncode == 1
    assert "there is no golden file" in missing.stdout

    assert run_pytest(tmp_path, "--update-golden").returncode == 0
    file = tmp_path / "tests" / "golden" / "sample.text.txt"
    assert file.read_text(encoding="utf-8") == "one\ntwo\n"
    assert run_pytest(tmp_path).returncode == 0

    write_test(tmp_path, "def test_text(golden):\n    golden('one\\nthree')\n")
    different = run_pytest(tmp_path)
    assert different.returncode == 1
    assert "-two" in different.stdout
    assert "+three" in different.stdout


SKIPS = {
    "call": "import pytest\ndef test_it():\n    pytest.skip('no device')\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='no device')\ndef test_it():\n    pass\n",
    "module": "import pytest\npytest.importorskip('no_such_module_here', reason='no device')\n",
    "xfail": "import pytest\n@pytest.mark.xfail(reason='no device')\ndef test_it():\n    assert False\n",
}


def test_a_skip_of_any_kind_fails_in_ci_alone(tmp_path: Path) -> None:
    """Tests that skip or are expected to fail, and a module that skips itself."""
    (tmp_path / "tests").mkdir()
    for kind, text in SKIPS.items():
        (tmp_path / "tests" / f"test_{kind}.py").write_text(text, encoding="utf-8")
    relaxed = run_pytest(tmp_path)
    assert relaxed.returncode == 0
    assert "3 skipped, 1 xfailed" in relaxed.stdout

    workers = ("-p", "xdist", "-n", "2")  # as CI runs them
    strict = run_pytest(tmp_path, *workers, "--continue-on-collection-errors", ci=True)
    assert strict.returncode == 1
    # The mark skips in the set-up phase, the module while it is collected: pytest calls these errors.
    assert "2 failed, 2 errors" in strict.stdout
    assert strict.stdout.count("nothing may be skipped in CI: ") >= 4
    assert strict.stdout.count("no device") >= 4


def test_half_of_the_workers_begin_with_browsers_and_the_others_with_the_longest_files(tmp_path: Path) -> None:
    """Which is those in no folder."""
    text = "import os, pathlib, time\ndef test_it():\n    folder = pathlib.Path({folder!r})\n" + (
        "    (folder / f'{{time.monotonic_ns()}} {{os.environ[\"PYTEST_XDIST_WORKER\"]}} {place}').touch()\n"
    )
    (ran := tmp_path / "ran").mkdir()
    for place in ("tests", "tests/autodiff", "tests/browser"):
        (tmp_path / place).mkdir(exist_ok=True)
        for number in range(4):
            name = place.replace("/", "_")
            file = tmp_path / place / f"test_{name}_{number}.py"
            file.write_text(text.format(folder=str(ran), place=name), encoding="utf-8")
    done = run_pytest(tmp_path, "-p", "xdist", "-n", "3", "--dist=loadfile", "--no-loadscope-reorder")
    assert done.returncode == 0 and "12 passed" in done.stdout, done.stdout
    first: dict[str, str] = {}
    for _, worker, place in sorted(file.name.split() for file in ran.iterdir()):
        first.setdefault(worker, place)
    assert sorted(first.values()) == ["tests", "tests_browser", "tests_browser"]
