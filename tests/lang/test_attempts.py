"""When calls are tried, replayed, and given up (`lang/capture/attempts.py`)."""

import random

import pytest

import tinote as ti
from tinote.errors import CaptureError
from tinote.lang.capture import attempts as machine
from tinote.lang.capture.attempts import Attempts, StepCapture
from tinote.source import Span


class Program:
    def __init__(self, replays: int = 0) -> None:
        self.replays = replays


def error(what: str = "a table") -> CaptureError:
    return CaptureError(f"this cannot be captured: {what}", Span("steps.py", 3))


def plain_calls(one: Attempts[Program]) -> int:
    """How many calls run as the function before one is tried."""
    count = 0
    while not one.may_try():
        count += 1
        assert count < 10_000, "it is given up"
    return count


def test_first_calls_run_plainly() -> None:
    assert [plain_calls(Attempts(count)) for count in (0, 1, 2)] == [0, 1, 2]


def test_after_changes_calls_wait_longer_each_time() -> None:
    one, waits = Attempts[Program](), list[int]()
    for _ in range(12):
        one.found(Program())
        one.change()
        waits.append(plain_calls(one))
    assert waits == [0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]
    assert one.captures == 12


@pytest.mark.parametrize(("replays", "wait"), [(999, 64), (1000, 0)])
def test_a_program_that_lived_long_is_recorded_anew_at_once(replays: int, wait: int) -> None:
    one = Attempts[Program]()
    for count in (0, 0, 0, replays):
        one.found(Program(count))
        one.change()
    assert one.waits == wait and one.program is None


def test_more_paths_are_no_further_capture() -> None:
    one = Attempts[Program]()
    one.found(Program(5))
    found = one.found(Program())
    assert one.program is found and found.replays == 5 and one.captures == 1


def test_three_unexpected_calls_in_a_row_are_one_too_many() -> None:
    one = Attempts[Program]()
    for _ in range(2):
        one.strike(error())
        assert one.may_try() and not one.is_given_up
    one.found(Program())
    one.strike(error())
    one.strike(error())
    assert one.may_try() and one.how() == StepCapture("learning", captures=1)
    one.strike(error())
    assert not one.may_try() and one.how() == StepCapture("function", "a table", Span("steps.py", 3), captures=1)


def test_what_is_given_up_is_tried_again_with_another_function_or_session() -> None:
    one = Attempts[Program]()
    one.refuse(error())
    assert not one.may_try() and one.is_given_up
    one.resume()
    assert one.may_try() and one.how().state == "learning"
    one.refuse(error())
    ti.init(arch=ti.cpu)
    assert one.may_try() and not one.is_given_up
    assert one.found(Program()) is one.program and one.how(7) == StepCapture("replayed", replays=7, captures=1)


def test_random_lives() -> None:
    """Whatever happens, a call is either replayed, or tried, or runs plainly; and what is given up stays so."""
    rng = random.Random(3)
    for _ in range(200):
        one = Attempts[Program](rng.randrange(3))
        for _ in range(60):
            given_up = one.is_given_up
            match rng.randrange(5):
                case 0 if not given_up:
                    one.found(Program(rng.choice([0, 2000])))
                case 1 if one.program is not None:
                    one.change()
                case 2 if not given_up:
                    one.strike(error())
                case 3 if not rng.randrange(10):
                    one.refuse(error())
                case _:
                    one.may_try()
            assert not (given_up and one.program is not None)
            assert one.is_given_up or not given_up
            assert one.how().state == (
                "function" if one.is_given_up else "learning" if one.program is None else "replayed"
            )
            assert 0 <= one.waits <= machine._LONGEST_WAIT
