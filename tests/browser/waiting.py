"""Reads of a page that wait: what an action changes is there when the browser gets round to it, which on a busy machine
is later than the next line of a test.

`expect(locator)` is playwright's, as patient as everything else here; `poll` waits for what is computed from the page;
`still_box` for a place to point at. A gate (`tests/test_gates.py`) finds reads of a page that do not wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

try:
    from playwright.sync_api import expect
except ImportError:  # The tests are skipped then (`conftest`).
    expect: Any = None

WAIT_SECONDS = 120.0
"""Waits end as soon as what they wait for is there; these bounds only say when it will not come any more, also on a
machine that is slow and busy.
"""

POLL_SECONDS = 0.05
"""How often a page or a kernel is asked whether it is so far. To ask more often keeps them from getting there: in every
frame, as playwright would, a page is painted 60 times a second for it, on a CPU.
"""

if expect is not None:
    expect.set_options(timeout=WAIT_SECONDS * 1000)

T = TypeVar("T")


def poll(read: Callable[[], T], wanted: Any, seconds: float = WAIT_SECONDS) -> T:
    """Call `read` again and again until it gives what is `wanted`: a value, or a condition on it. What it gave.

    It must ask the page: what playwright remembers of one, such as `page.url`, stays as it is meanwhile.
    """
    __tracebackhide__ = True
    end = time.monotonic() + seconds
    while True:
        found = read()
        if wanted(found) if callable(wanted) else found == wanted:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds:.0f} s it is still {found!r}" + _instead_of(wanted))
        time.sleep(POLL_SECONDS)


def _instead_of(wanted: Any) -> str:
    return "" if callable(wanted) else f", not {wanted!r}"


def still_box(locator: Any) -> dict[str, float]:
    """Where an element is in the window, in CSS pixels (x, y, width, height), once it stays there from one frame to the
    next.
    """
    expect(locator).to_be_visible()
    before = locator.bounding_box()

    def moved() -> bool:
        nonlocal before
        locator.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
        previous, before = before, locator.bounding_box()
        return before is None or before != previous

    poll(moved, False)
    return before
