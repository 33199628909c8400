"""Flow of frames: credits, the worker thread, and what an error looks like."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinote.errors import FieldError
from tinote.viz.notebook.view import FrameCredits, Worker, describe_error


class Clock:
    """Time that passes on request."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def ready_credits(**options) -> FrameCredits:
    credits = FrameCredits(**options)
    credits.ready("page")
    return credits


def test_nothing_is_sent_before_a_page_is_ready():
    assert not FrameCredits().can_send()
    assert ready_credits().can_send()


def test_at_most_a_window_is_in_flight_and_acknowledgements_are_cumulative():
    credits = ready_credits(window=3)
    assert [credits.next_frame() for _ in range(3)] == [1, 2, 3]
    assert not credits.can_send()
    credits.acknowledge(2)
    assert credits.in_flight == 1
    credits.acknowledge(1)  # Late: changes nothing.
    assert credits.in_flight == 1
    credits.acknowledge(99)  # Never sent: changes nothing.
    assert credits.in_flight == 1


def test_a_page_loaded_again_gives_all_credits_back():
    credits = ready_credits()
    while credits.can_send():
        credits.next_frame()
    credits.ready("new page")
    assert credits.in_flight == 0
    assert credits.can_send()


def test_a_view_out_of_sight_gets_nothing_and_one_of_two_copies_suffices():
    credits = ready_credits()
    credits.report("page", False)
    assert credits.connected and not credits.can_send()
    credits.report("copy", True)
    assert credits.can_send()
    credits.gone("copy")
    assert not credits.can_send()
    credits.gone("page")
    assert not credits.connected


def test_a_page_that_vanished_without_a_word_does_not_keep_the_view_in_sight():
    credits = ready_credits()
    credits.ready("new page", visible=False)
    assert not credits.can_send()


@pytest.mark.parametrize("said", list(itertools.permutations(range(4))))
def test_what_a_page_says_counts_by_its_order_and_not_by_when_it_comes(said):
    """A page scrolls in, out and in again; its messages are handled on two threads and overtake each other."""
    credits = FrameCredits()
    for order in said:
        if order == 0:
            credits.ready("page", True, 0)
        else:
            credits.report("page", order != 2, order)
    assert credits.visible
    credits.gone("page", 4)
    credits.report("page", True, 3)
    credits.ready("page", True, 0)
    assert not credits.connected


def test_the_window_grows_with_the_way_and_not_with_the_painting():
    clock = Clock()
    credits = ready_credits(window=2, largest_window=8, clock=clock)
    frame = credits.next_frame()
    clock.now += 0.5
    credits.acknowledge(frame, waited=0.5)
    assert credits.window == 2
    frame = credits.next_frame()
    clock.now += 0.05
    credits.acknowledge(frame)
    assert credits.window == 5
    frame = credits.next_frame()
    clock.now += 10.0
    credits.acknowledge(frame)
    assert credits.window == 8
    for _ in range(10):
        credits.acknowledge(credits.next_frame())
    assert credits.window == 2


@given(st.lists(st.one_of(st.just("send"), st.just("ready"), st.integers(-3, 30)), max_size=60))
def test_never_more_in_flight_than_the_window_whatever_the_page_says(actions):
    credits = ready_credits(clock=Clock())
    for action in actions:
        if action == "send":
            if credits.can_send():
                credits.next_frame()
        elif action == "ready":
            credits.ready("again")
        else:
            credits.acknowledge(action)
        assert 0 <= credits.in_flight <= credits.largest_window


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.floats(0.0, 0.3)), max_size=40))
def test_a_page_that_answers_only_when_asked_never_waits_for_ever(turns):
    """Each turn the kernel sends `burst` frames, if it may; the page leaves out up to `left_out` of those that wait,
    paints one, and answers after `way` seconds if that one, or one that was left out, asked for it.
    """
    clock = Clock()
    credits = ready_credits(clock=clock)
    waiting: list[tuple[int, bool]] = []
    for burst, left_out, way in turns:
        for _ in range(burst):
            if credits.can_send():
                frame = credits.next_frame()
                waiting.append((frame, credits.asks(frame)))
        painted, waiting = waiting[: left_out + 1], waiting[left_out + 1 :]
        clock.now += way
        if any(asked for _, asked in painted):
            credits.acknowledge(painted[-1][0])
        assert credits.can_send() or any(asked for _, asked in waiting)


def test_waiting_ends_when_another_thread_acknowledges():
    async def scenario():
        credits = ready_credits(window=1)
        credits.next_frame()
        timer = threading.Timer(0.05, credits.acknowledge, [1])
        timer.start()
        await asyncio.wait_for(credits.wait(), 300)
        return credits.in_flight

    assert asyncio.run(scenario()) == 0


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, StopIteration])
def test_a_worker_returns_every_exception_as_an_outcome(error):
    async def scenario():
        worker = Worker("test")

        def fail():
            raise error("no")

        first = await worker.run(fail)
        second = await worker.run(lambda: threading.current_thread().name)
        worker.close()
        return first, second

    first, second = asyncio.run(scenario())
    assert isinstance(first.error, error) and first.value is None
    assert second == ("test", None)


def test_a_worker_runs_jobs_in_order():
    async def scenario():
        worker, done = Worker("test"), []
        await asyncio.gather(*(worker.run(lambda number=number: done.append(number)) for number in range(20)))
        worker.close()
        return done

    assert asyncio.run(scenario()) == list(range(20))


def test_an_error_is_described_by_the_users_own_lines():
    def spring():
        raise ValueError("too stiff")

    with pytest.raises(ValueError) as caught:
        spring()
    text = describe_error(caught.value)
    assert "in spring" in text
    assert text.endswith("ValueError: too stiff")
    assert describe_error(FieldError("no gradient", hint="place one")) == "no gradient\nhelp: place one"
