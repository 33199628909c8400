"""Memory is set to zero, all of it and nothing else, however many threads do it."""

import pytest

import tinote as ti
from tinote.runtime.clearing import clear_memories
from tinote.runtime.memory import Memory


class Inside(Memory):
    """Bytes in the middle of a larger block."""

    def __init__(self, block: Memory, first: int, nbytes: int) -> None:
        self._owner = block.view()[first : first + nbytes]
        self.address = block.address + first
        self.nbytes = nbytes


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("nbytes", [0, 1, 1000, 1 << 20, (3 << 20) + 13])
def test_all_bytes_and_no_others(nbytes: int, threads: int) -> None:
    block = Memory(nbytes + 200)
    block.view()[:] = b"\x01" * (nbytes + 200)
    clear_memories([Inside(block, 100, nbytes), Memory(8)], lambda: threads)
    assert bytes(block.view()) == b"\x01" * 100 + bytes(nbytes) + b"\x01" * 100


def test_gradients_that_lie_among_other_numbers() -> None:
    ti.init(num_threads=4)
    x = ti.field(ti.f32, needs_grad=True)
    ti.root.dense(ti.i, 1 << 19).place(x, x.grad)
    x.fill(3)
    x.grad.fill(5)
    ti.ad.clear_all_gradients()
    assert (x.to_numpy() == 3).all()
    assert (x.grad.to_numpy() == 0).all()
