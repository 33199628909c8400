"""What the live views import: nothing of the language, and nothing of what draws slowly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_views_do_not_import_the_language_or_matplotlib():
    unwanted = ("tinote.lang", "tinote.compiler", "llvmlite", "matplotlib.")
    code = f"""
import sys, tinote.viz.particles, tinote.viz.gui
print([name for name in sys.modules if name.startswith({unwanted!r})])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
