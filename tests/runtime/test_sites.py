"""Sites: what words become in a message and in a printed line."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinote.errors import (
    CompilerBug,
    KernelAssertionError,
    KernelIndexError,
    KernelMemoryError,
    KernelOverflowError,
    KernelZeroDivisionError,
)
from tinote.runtime.sites import Bounds, PrintedValue, Site, SiteKind, fault, format_value, formatter
from tinote.source import Span

HERE = Span("somewhere.py", 3, 4)
NONE = (0,) * 6


def test_out_of_bounds_names_field_index_and_shape() -> None:
    site = Site(SiteKind.BOUNDS, HERE, "x", Bounds((10, 20), (0, 1)))
    error = fault(2, site, (3, 25, 0, 0, 0, 0), 0)
    assert isinstance(error, KernelIndexError) and isinstance(error, IndexError)
    assert error.message == "index (3, 25) is out of bounds for 'x' of shape (10, 20): axis 1: valid are 0 to 19"
    assert error.span == HERE


def test_out_of_bounds_in_one_dimension() -> None:
    site = Site(SiteKind.BOUNDS, HERE, "x", Bounds((10,), (0,)))
    error = fault(2, site, (-1, 0, 0, 0, 0, 0), 0)
    assert error.message == "index -1 is out of bounds for 'x' of shape (10,): valid are 0 to 9"


def test_extents_from_the_payload() -> None:
    site = Site(SiteKind.BOUNDS, HERE, "a", Bounds(None, (0, 1), (2, 3)))
    error = fault(2, site, (7, 0, 5, 6, 0, 0), 0)
    assert error.message == "index (7, 0) is out of bounds for 'a' of shape (5, 6): axis 0: valid are 0 to 4"


def test_one_axis() -> None:
    known = fault(2, Site(SiteKind.BOUNDS, HERE, "x", Bounds((4, 0), (0,), axis=1)), (2, *NONE[1:]), 0)
    assert known.message == "index 2 is out of bounds for axis 1 of 'x' of shape (4, 0): it has no elements"
    passed = fault(2, Site(SiteKind.BOUNDS, HERE, "x", Bounds(None, (0,), (1,), axis=2)), (9, 8, 0, 0, 0, 0), 0)
    assert passed.message == "index 9 is out of bounds for axis 2 of 'x': valid are 0 to 7"
    whole = fault(2, Site(SiteKind.BOUNDS, HERE, "a", Bounds(None, (0,), (1, 2), axis=1)), (9, 4, 8, 0, 0, 0), 0)
    assert whole.message == "index 9 is out of bounds for axis 1 of 'a' of shape (4, 8): valid are 0 to 7"


def test_other_faults() -> None:
    division = fault(3, Site(SiteKind.DIVISION, HERE, "//"), NONE, 0)
    assert isinstance(division, KernelZeroDivisionError) and division.message == "integer division by zero"
    assert fault(3, Site(SiteKind.DIVISION, HERE, "%"), NONE, 0).message == "integer remainder by zero"
    assertion = fault(4, Site(SiteKind.ASSERT, HERE, "", ("x is ", PrintedValue("f32"))), (0x3F800000, *NONE[1:]), 0)
    assert isinstance(assertion, KernelAssertionError) and assertion.message == "x is 1.0"
    assert fault(4, Site(SiteKind.ASSERT, HERE), NONE, 0).message == "assertion failed"
    memory = fault(5, Site(SiteKind.MEMORY, HERE), NONE, 3 << 20)
    assert isinstance(memory, KernelMemoryError) and "3.0 MiB" in memory.message and "memory_limit" in memory.hint
    overflow = fault(6, Site(SiteKind.OVERFLOW, HERE, "i32 overflow in +"), NONE, 0)
    assert isinstance(overflow, KernelOverflowError) and overflow.message == "i32 overflow in +"


def test_a_status_that_does_not_fit_its_site_is_a_fault_of_the_compiler() -> None:
    with pytest.raises(CompilerBug):
        fault(3, Site(SiteKind.ASSERT, HERE), NONE, 0)


def test_unknown_types_are_refused_at_once() -> None:
    with pytest.raises(CompilerBug, match="q7"):
        formatter((PrintedValue("q7"),))


def _word(data: bytes) -> int:
    return struct.unpack("<q", data.ljust(8, b"\0"))[0]


@pytest.mark.parametrize(
    ("part", "word", "text"),
    [
        (PrintedValue("i8"), 0xFF, "-1"),
        (PrintedValue("u8"), -1, "255"),
        (PrintedValue("i32"), 0xFFFFFFFF, "-1"),
        (PrintedValue("u32"), -1, "4294967295"),
        (PrintedValue("i64"), -(2**63), str(-(2**63))),
        (PrintedValue("u64"), -1, str(2**64 - 1)),
        (PrintedValue("u1"), 1, "True"),
        (PrintedValue("u1"), 0, "False"),
        (PrintedValue("f32"), _word(struct.pack("<f", 0.1)), "0.1"),
        (PrintedValue("f32"), _word(struct.pack("<f", 3.4028234663852886e38)), "3.4028235e+38"),
        (PrintedValue("f32"), _word(struct.pack("<f", -0.0)), "-0.0"),
        (PrintedValue("f32"), _word(struct.pack("<f", float("nan"))), "nan"),
        (PrintedValue("f64"), _word(struct.pack("<d", 0.1)), "0.1"),
        (PrintedValue("f64"), _word(struct.pack("<d", float("-inf"))), "-inf"),
        (PrintedValue("f16"), _word(struct.pack("<e", 0.1)), "0.1"),
        (PrintedValue("f16"), _word(struct.pack("<e", 65504.0)), "65504.0"),
        (PrintedValue("f64", ".3f"), _word(struct.pack("<d", 2 / 3)), "0.667"),
        (PrintedValue("i32", "05d"), 42, "00042"),
    ],
)
def test_values(part: PrintedValue, word: int, text: str) -> None:
    assert formatter(("<", part, ">"))([word]) == f"<{text}>"


def significant(text: str) -> int:
    """The number of digits that say something: 1000.0 has one."""
    return len(Decimal(text).normalize().as_tuple().digits)


@given(st.floats(width=32, allow_nan=False))
def test_singles_print_few_digits_that_read_back(value: float) -> None:
    text = format_value(value, "f32")
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    assert significant(text) <= significant(repr(value))


@given(st.floats(width=16, allow_nan=False))
def test_halves_print_few_digits_that_read_back(value: float) -> None:
    assert struct.pack("<e", float(format_value(value, "f16"))) == struct.pack("<e", value)
