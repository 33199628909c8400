"""Text in, text out: what the tests of passes share."""

from __future__ import annotations

from collections.abc import Callable

from tinote.ir.nodes import Function
from tinote.ir.parse import parse
from tinote.ir.text import equal, show
from tinote.ir.verify import Form, verify

Pass = Callable[[Function], Function]


def becomes(run: Pass, before: str, after: str, form: Form = Form.SCALAR, result: Form | None = None) -> Function:
    """Assert that `run` turns one text into the other, valid in and valid out, and that a second run finds nothing."""
    fn = parse(before)
    verify(fn, form)
    new = run(fn)
    verify(new, form if result is None else result)
    wanted = parse(after)
    assert equal(new, wanted), f"\n{show(new)}\ninstead of\n{show(wanted)}"
    assert run(new) is new, f"a second run changes\n{show(new)}\nto\n{show(run(new))}"
    return new


def stays(run: Pass, text: str, form: Form = Form.SCALAR) -> None:
    """Assert that `run` leaves the function as it is: the same object."""
    fn = parse(text)
    verify(fn, form)
    new = run(fn)
    assert new is fn, f"\n{show(new)}\ninstead of\n{show(fn)}"
