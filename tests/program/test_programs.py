"""Programs as text, their rules, and their meaning: by hand, by random, and by what is captured."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.program.random_programs import Failed, RandomProgram, memory_of, mixed
from tinote.compiler.launch.native import Native
from tinote.ir.tokens import ParseError
from tinote.ir.types import scalar_named
from tinote.lang.capture.prepare import Prepared
from tinote.lang.data.fields import Field
from tinote.program import operations as ops
from tinote.program import simplify as simplifying
from tinote.program.interpret import OPERATIONS, Ended, interpret
from tinote.program.overflow import may_overflow
from tinote.program.parse import parse
from tinote.program.program import Path, Program
from tinote.program.simplify import simplified
from tinote.program.text import show
from tinote.program.verify import InvalidProgram, verify
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE

STEP = File(__file__).with_name("step.txt")
INPUTS = (0.75, -1.25)


# ---- text


def test_a_program_by_hand_is_read_and_shown_as_it_is() -> None:
    text = STEP.read_text("utf-8")
    program = parse(text)
    verify(program)
    assert show(program) == text
    assert [block.kind for block in program.blocks] == ["field", "scratch", "data", "input"]


def test_constants_and_objects_keep_their_bits() -> None:
    one = object()
    bits = [struct.unpack("<q", struct.pack("<d", value))[0] for value in (0.1, -0.0, 1e300, np.inf, -np.inf)]
    bits += [0x7FF8000000000001, -1]
    numbers = tuple([ops.Constant("f", one) for one in bits] + [ops.Constant("i", -(1 << 63))])
    found = ops.Result("list", tuple([ops.Result("number", (number,)) for number in numbers]))
    keys = ops.Result("dict", (("a", found), ((1, "b"), ops.Result("constant", (one,)))))
    program = Program(root=Path([ops.End(keys, (), ())]))
    objects: list[Any] = []
    text = show(program, objects)
    assert objects == [one]
    assert parse(text, objects).root.steps[0].result == keys


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  clear @y[0] (4)", "there is no block '@y'"),
        ("  launch k ()", "there is no code 'k'"),
        ("  %x1 = load @x[0] f32 ()", "a register is %f, %i, %b or %s"),
        ("  fill @x[0] f32 () = 1.0f32", "a number is an i64 or an f64"),
        ("  forget @x[0]", "expected an operation"),
        ("  end nothing", "expected a result"),
        ("  end object 3", "there is no object 3"),
        ("  if %b1:\n    end none\n  end none", "expected 'else'"),
    ],
)
def test_a_text_that_is_no_program_is_refused_at_its_line(line: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("(", r"\(")) as caught:
        parse(f"block @x: field (8)\nprogram (%b1):\n{line}\n")
    assert caught.value.line >= 3


# ---- rules

#: A line of `step.txt`, what stands there in its place, and which rule that breaks.
BROKEN = {
    "a register set twice": ("%f2 = multiply (%f0, 0.5f64)", "%f0 = multiply (%f0, 0.5f64)", "set twice"),
    "a register of another kind set twice": ("%f2 = multiply", "%i0 = multiply", "set twice"),
    "a register read before": ("(%f0, 0.5f64)", "(%f9, 0.5f64)", "not set before"),
    "a register of one side": ("end none", "end number (%f5)", "not set before"),
    "a view beyond its block": ("copy @saved[0] f32 (8)", "copy @saved[4] f32 (8)", "bytes 4 to 36"),
    "a strided view beyond its block": ("f32 (4: 8)", "f32 (4: 16)", "bytes 0 to 52"),
    "a clear beyond its block": ("clear @x[0] (32)", "clear @x[8] (32)", "bytes 8 to 40"),
    "a copy that overlaps": (
        "copy @saved[0] f32 (8) = @x[0] f32 (8)", "copy @saved[0] f32 (7) = @saved[4] f32 (7)", "overlap"
    ),
    "a copy of another shape": ("= @x[0] f32 (8)", "= @x[0] f32 (4)", "one shape"),
    "a copy that converts integers": ("= @x[0] f32 (8)", "= @x[0] i32 (8)", "converts floats"),
    "a load of several elements": ("load @x[4] f32 ()", "load @x[4] f32 (2)", "one element"),
    "constants written to": ("fill @x[0] f32 (4: 8)", "fill @data[0] f32 (2)", "constant, and written to"),
    "a launch that writes constants": (
        "(24: @x[0]) lengths (32: 8) gives (40: f32 %f3) fills (@x)",
        "(24: @data[0]) gives (40: f32 %f3)",
        "constant, and written to",
    ),
    "an argument too many": ("launch advance (%f2)", "launch advance (%f2, %f2)", "takes 1 numbers, not 2"),
    "a slot filled twice": ("(24: @x[0])", "(8: @x[0])", "each filled once"),
    "a slot not filled": (" at (24: @x[0])", "", "each filled once"),
    "fills what it does not write": ("fills (@x)", "fills (@saved)", "fills what it does not write"),
    "no operation": ("lt (%f4, 1.0f64)", "less (%f4, 1.0f64)", "is not an operation"),
    "an operation of three": ("lt (%f4, 1.0f64)", "lt (%f4, 1.0f64, %f4)", "is not an operation"),
    "something after an end": ("    end none", "    end none\n    clear @x[0] (4)", "follows an end"),
    "a path without an end": ("    end none", "    clear @x[0] (4)", "has no end"),
    "a choice without sides": (
        STEP.read_text("utf-8").partition("  if %b6:\n")[2], "    unmet\n  else:\n    unmet\n", "two sides"
    ),
    "an unused block": ("block @saved: scratch (32)", "block @saved: unused (32)", "unused, and used"),
    "a block of no kind": ("block @saved: scratch (32)", "block @saved: other (32)", "of no kind"),
    "data of another length": ('data (8) "0000803f00000040"', 'data (8) "0000803f"', "data that it cannot have"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str) -> None:
    there, instead, message = BROKEN[name]
    text = STEP.read_text("utf-8")
    assert text.count(there) >= 1
    with pytest.raises(InvalidProgram, match=message):
        verify(parse(text.replace(there, instead, 1)))


def test_a_path_may_be_open_while_it_is_made() -> None:
    program = parse("block @x: field (8)\nprogram ():\n  clear @x[0] (8)\n")
    verify(program, whole=False)
    with pytest.raises(InvalidProgram, match="has no end"):
        verify(program)


# ---- meaning


def ended(program: Program, seed: int, blocks: Sequence[ops.Block] | None = None) -> tuple[Any, ...]:
    """What a program leaves: its fields and inputs, what may have failed or printed, its result and its updates; and
    its fields and inputs where each of what may fail does. `blocks`: those that it had at first.
    """
    blocks = blocks or program.blocks
    memory = memory_of(blocks, seed)
    launched: list[str] = []
    found = interpret(program, memory, INPUTS, mixed(program, memory, launched))
    failed = [left_at_failure(program, seed, blocks, at) for at in range(len(launched))]
    return kept(blocks, memory), launched, result_of(found, memory), failed


def held(program: Program, seed: int) -> list[set[bytes]]:
    """What each field and input held at some time: what is put back in any case may be so earlier."""
    nothing = ops.End(ops.Result("tuple", ()), (), ())
    found: list[set[bytes]] = []
    for count in range(len(program.root.steps)):
        begin = Program(program.blocks, program.codes, program.inputs, Path([*program.root.steps[:count], nothing]))
        memory = memory_of(program.blocks, seed)
        interpret(begin, memory, INPUTS, mixed(begin, memory, []))
        found = found or [set() for _ in kept(program.blocks, memory)]
        for contents, now in zip(found, kept(program.blocks, memory), strict=True):
            contents.add(now)
    return found


def left_at_failure(program: Program, seed: int, blocks: Sequence[ops.Block], at: int) -> list[bytes]:
    memory = memory_of(blocks, seed)
    with pytest.raises(Failed):
        interpret(program, memory, INPUTS, mixed(program, memory, [], at))
    return kept(blocks, memory)


def kept(blocks: Sequence[ops.Block], memory: Sequence[bytearray]) -> list[bytes]:
    return [bytes(memory[k]) for k, block in enumerate(blocks) if block.kind in ("field", "input")]


def result_of(found: Ended, memory: list[bytearray]) -> list[Any]:
    values: list[Any] = []
    for kind, parts in ops.leaves_of(found.end.result):
        values.append(memory_in(parts[0], memory) if kind == "array" else struct.pack("<d", found.number(parts[0])))
    return values + [(place, struct.pack("<d", found.number(one))) for place, one in found.end.updates]


def memory_in(view: ops.View, memory: list[bytearray]) -> bytes:
    assert view.row is not None
    return bytes(memory[view.block][slice(*view.row)])


def test_random_programs_as_text(random_programs: range) -> None:
    for seed in random_programs:
        program = RandomProgram(seed).program
        verify(program)
        text = show(program)
        again = parse(text)
        assert show(again) == text
        assert ended(again, seed) == ended(program, seed)


def test_random_programs_are_simplified_to_what_they_do(random_programs: range) -> None:
    shorter = 0
    for seed in random_programs:
        program = RandomProgram(seed, choices=False).program
        wanted = [ended(program, state) for state in (1, 2)]
        before, blocks = len(program.root.steps), list(program.blocks)
        original = Program(blocks, list(program.codes), program.inputs, Path(list(program.root.steps)))
        program.root.steps = simplified(program, program.root.steps)
        verify(program)
        for state, there in zip((1, 2), wanted, strict=True):
            *found, failed = ended(program, state, blocks)
            assert (*found,) == there[:-1], f"seed {seed}"
            for at, (left, as_wanted) in enumerate(zip(failed, there[-1], strict=True)):
                assert left == as_wanted or all(
                    one == other or one in earlier
                    for one, other, earlier in zip(left, as_wanted, held(original, state), strict=True)
                ), f"seed {seed}, failure {at}"
        shorter += len(program.root.steps) < before
    assert shorter > len(random_programs) / 4


def in_memory(contents: Sequence[bytearray]) -> list[Memory]:
    found = [Memory(max(len(content), 8)) for content in contents]
    for made, content in zip(found, contents, strict=True):
        made.view()[: len(content)] = content
    return found


def native(program: Program, seed: int) -> tuple[Any, ...]:
    """The same, by the native replay."""
    memories = in_memory(memory_of(program.blocks, seed))
    prepared = Prepared(program, [], memories)
    for register, value in zip(program.inputs, INPUTS, strict=True):
        prepared.floats[register.number] = value
    end = prepared.ends[prepared.run()]
    left = [bytearray(one.view()[: block.nbytes]) for one, block in zip(memories, program.blocks, strict=True)]
    registers = {one: prepared.number(one) for one in ops.read_by(end) if isinstance(one, ops.Register)}
    return kept(program.blocks, left), [], result_of(Ended(end, registers), left), []


def test_random_programs_run_natively_as_they_are_meant(random_programs: range) -> None:
    for seed in random_programs:
        program = RandomProgram(seed, launches=False).program
        assert native(program, seed) == ended(program, seed), f"seed {seed}"


#: Rules of `simplify` that are broken one by one: each must be noticed by random programs.
MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "copies are idle whatever happened since": ("_is_still", lambda equal, version, copy, origin: copy in equal),
    "every view is a whole block": ("_is_whole", lambda program, view: True),
    "what is put back stays saved": ("_without_saved", lambda put_back, written: put_back),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_simplification_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, instead = MUTANTS[name]
    monkeypatch.setattr(simplifying, function, instead)
    for seed in range(400):
        program = RandomProgram(seed, choices=False).program
        wanted, blocks = ended(program, seed), list(program.blocks)
        try:
            program.root.steps = simplified(program, program.root.steps)
            verify(program)
            if ended(program, seed, blocks) != wanted:
                return
        except (InvalidProgram, AssertionError, KeyError):
            return
    pytest.fail("no program notices it")


# ---- what is captured


def launched_alone(
    program: Program, natives: Sequence[Native], memory: list[bytearray], step: ops.Launch, arguments: list[Any]
) -> list[Any]:
    """A launch of real code, as a program that does nothing else."""
    given = [ops.Register("f" if type(value) is float else "i", k) for k, value in enumerate(arguments)]
    gives = [ops.Register(register.kind, 100 + k) for k, (_, _, register) in enumerate(step.results)]
    results = tuple([(slot, name, one) for (slot, name, _), one in zip(step.results, gives, strict=True)])
    end = ops.End(ops.Result("tuple", tuple([ops.Result("number", (one,)) for one in gives])), (), ())
    root = Path([step._replace(arguments=tuple(given), results=results), end])
    memories = in_memory(memory)
    prepared = Prepared(Program(program.blocks, program.codes, given, root), natives, memories, 1)
    for register, value in zip(given, arguments, strict=True):
        (prepared.floats if register.kind == "f" else prepared.integers)[register.number] = value
    prepared.run()
    for content, made in zip(memory, memories, strict=True):
        content[:] = made.view()[: len(content)]
    return [prepared.number(one) for one in gives]


_WHOLE = ("add", "subtract", "multiply", "negative", "absolute", "floor_divide", "remainder", "true_divide", "lt")


def test_integers_that_may_not_fit_are_found() -> None:
    """Where a random program is not refused, all its integers fit, whatever is in memory."""
    formats, refused = {"i8": "b", "i16": "h", "i32": "i", "u32": "I", "i64": "q"}, 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        types = [str(one) for one in random.choice(list(formats), 3)]
        steps: list[ops.Operation] = []
        for k, name in enumerate(types):
            steps.append(ops.LoadElement(ops.Register("i", k), ops.View(0, 8 * k, name, (), ()), NOWHERE))
        whole: list[ops.Operand] = [
            *[ops.Register("i", k) for k in range(3)],
            ops.Constant("i", int(random.integers(9))),
        ]
        for k in range(3, 7):
            operation = str(random.choice(_WHOLE))
            given = tuple([whole[n] for n in random.integers(len(whole), size=OPERATIONS[operation].operands)])
            kind = {"true_divide": "f", "lt": "b"}.get(operation, "i")
            steps.append(ops.Compute(operation, ops.Register(kind, k), given, NOWHERE))
            whole += [ops.Register("i", k)] if kind == "i" else []
        end = ops.End(ops.Result("constant", (None,)), (), ())
        program = Program([ops.Block("field", "x", 24)], root=Path([*steps, end]))
        verify(program)
        if may_overflow(program) is not None:
            refused += 1
            continue
        for _ in range(30):
            memory = bytearray(24)
            for k, name in enumerate(types):
                t = scalar_named(name)
                extremes = [t.lowest, t.highest, 0, 1, t.lowest + 1, int(random.integers(t.lowest, t.highest))]
                struct.pack_into(formats[name], memory, 8 * k, int(random.choice(extremes)))
            try:
                found = interpret(program, [memory], [], lambda *_: [])
            except ZeroDivisionError:
                continue
            assert all(abs(value) < 1 << 63 or value == -(1 << 63) for value in found.registers.values()), seed
    assert 50 < refused < 250


def test_what_a_captured_step_does_can_be_read_and_is_what_it_means() -> None:
    ti.init(arch=ti.cpu, num_threads=1)
    x, w = ti.field(ti.f32, 6), ti.field(ti.f32, 6, needs_grad=True)
    place, loss = ti.Vector.field(2, ti.f64, 3), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def advance(dt: ti.f32):
        for i in x:
            x[i] += dt * (i + 1)

    @ti.kernel
    def energy() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i] * x[i]
        return s

    @ti.kernel
    def cost():
        for i in w:
            loss[None] += w[i] ** 2 * x[i]

    @ti.capture
    def step(dt: float, n: int):
        advance(dt * 0.5)
        place[1] = [dt, 2.0]
        found = energy()
        if found > 5.0:
            x.fill(0.25)
        with ti.ad.Tape(loss):
            cost()
        return found, n + 1, w.grad.to_numpy(), place[1].x

    fields: list[Field] = [x, w, w.grad, loss, loss.grad, place]
    w.from_numpy(np.linspace(0.5, 1, 6).astype(np.float32))
    for dt in (0.01, 3.0):
        states = [one.to_numpy() for one in fields]
        captured = step.captured(dt, 3)
        program = captured.plan
        verify(program)
        assert show(parse(show(program))) == show(program) == f"{step.program(dt, 3)}\n"

        owners = captured.tables.memories
        memory = [
            bytearray(block.data or block.nbytes) if own is None else bytearray(own.view())
            for block, own in zip(program.blocks, owners, strict=True)
        ]
        launch = partial(launched_alone, program, captured.tables.natives, memory)
        meant = interpret(program, memory, [dt, 3], launch)
        found = step(dt, 3)
        kinds = list(ops.leaves_of(meant.end.result))
        numbers = [meant.number(parts[0]) for kind, parts in kinds if kind == "number"]
        assert numbers == [found[0], found[1], found[3]]
        (view,) = ops.arrays_of(meant.end.result)
        assert memory_in(view, memory) == found[2].tobytes()
        for content, own in zip(memory, owners, strict=True):
            assert own is None or bytes(content) == bytes(own.view())
        for field, state in zip(fields, states, strict=True):
            field.from_numpy(state)
