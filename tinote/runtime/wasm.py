"""From a WebAssembly object file, as LLVM writes it, to a module that imports only its memory.

    module = link(image, exported=("tn_replay",), launched=("k0_entry", "k1_entry"))
    module.image                      # what a browser takes
    module.launched["k1_entry"]       # its place in the table: what a pointer to it is
    module.addresses["tn_control"]    # of a variable
    module.end                        # from here on memory is free

An object file is a module already, but for its imports: of what nothing reaches it has too much, its functions and data
have no final numbers and addresses, and its numbers stand in five bytes each, so that a linker can replace them. Users'
machines have no linker, and all code is in one object; so here what is reached is numbered and placed, and numbers are
written as short as they are.

Memory begins with the stack, which grows down: past its end an access is out of memory, which ends the call. Behind it
lie the variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tinote.errors import CompilerBug

#: Bytes of the stack. Arrays of a function take at most 64 KiB of it.
STACK_BYTES = 1 << 20
PAGE_BYTES = 1 << 16

_MAGIC = b"\0asm\1\0\0\0"
_CUSTOM, _TYPE, _IMPORT, _FUNCTION, _TABLE, _MEMORY, _GLOBAL, _EXPORT, _START, _ELEMENTS, _CODE, _DATA = range(12)
_SEGMENTS, _SYMBOLS = 5, 8
_FUNCTION_SYMBOL, _DATA_SYMBOL, _GLOBAL_SYMBOL, _SECTION_SYMBOL, _TAG_SYMBOL, _TABLE_SYMBOL = range(6)
_UNDEFINED, _NAMED = 0x10, 0x40
(
    _FUNCTION_INDEX, _TABLE_INDEX, _TABLE_INDEX_WORD, _ADDRESS, _SIGNED_ADDRESS, _ADDRESS_WORD, _TYPE_INDEX,
    _GLOBAL_INDEX,
) = range(8)  # fmt: skip
_TABLE_NUMBER = 20
_WITH_ADDEND = (_ADDRESS, _SIGNED_ADDRESS, _ADDRESS_WORD)
_WORDS = (_TABLE_INDEX_WORD, _ADDRESS_WORD)
_SIGNED = (_TABLE_INDEX, _SIGNED_ADDRESS)
_I32, _FUNCTIONS = 0x7F, 0x70


class WasmModule(NamedTuple):
    """A WebAssembly module. `launched`: of functions, their places in the table; `addresses`: of variables; `end`: of
    the memory that it uses.
    """

    image: bytes
    launched: dict[str, int]
    addresses: dict[str, int]
    end: int


class _Relocation(NamedTuple):
    """A number to be replaced: where it is, `size` bytes long; the symbol, or what else it is about; what is added."""

    kind: int
    at: int
    size: int
    index: int
    addend: int


class _Symbol(NamedTuple):
    """`index`: of a function, a global or a table; of data, the segment, with `offset` in it; None if it is not defined
    here.
    """

    kind: int
    name: str
    index: int | None
    offset: int = 0


class _Piece(NamedTuple):
    """The code of a function, or a segment of data, and its relocations, which count from its begin."""

    body: bytes
    relocations: list[_Relocation]
    alignment: int = 1


def link(image: bytes, exported: Sequence[str], launched: Sequence[str]) -> WasmModule:
    """A module of an object file, with what its exported functions and those that are launched by their place in the
    table need. Raises `CompilerBug` for a function that nothing defines.
    """
    return _Linker(_Object(image), exported, launched).module()


# ---- reading


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned number in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.number()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def part(self) -> bytes:
        return self.take(self.number())

    def name(self) -> str:
        return self.part().decode()

    @property
    def is_over(self) -> bool:
        return self.at >= len(self.data)


def _sections(reader: _Reader) -> Iterator[tuple[int, bytes]]:
    while not reader.is_over:
        kind = reader.byte()
        yield kind, reader.part()


class _Object:
    """What an object file holds: types, functions (imported ones first) with the number of their type each, the code of
    those that are defined, data segments, symbols.
    """

    def __init__(self, image: bytes) -> None:
        if image[:8] != _MAGIC:
            raise CompilerBug("linking", "LLVM wrote no WebAssembly object")
        sections = list(_sections(_Reader(image, 8)))
        bodies = {kind: body for kind, body in sections if kind != _CUSTOM}
        customs: dict[str, _Reader] = {}
        for kind, body in sections:
            if kind == _CUSTOM:
                reader = _Reader(body)
                customs[reader.name()] = reader
        self.types = bodies[_TYPE]
        self.imported = self._imports(_Reader(bodies[_IMPORT]))
        self.function_types = [*self.imported.values()]
        reader = _Reader(bodies[_FUNCTION])
        self.function_types += [reader.number() for _ in range(reader.number())]
        numbers = {kind: number for number, (kind, _) in enumerate(sections) if kind != _CUSTOM}
        self._relocations: dict[int, list[_Relocation]] = {}
        for name, reader in customs.items():
            if name in ("reloc.CODE", "reloc.DATA"):
                kind = _CODE if name == "reloc.CODE" else _DATA
                if reader.number() != numbers[kind]:
                    raise CompilerBug("linking", f"{name} is about another section")
                self._relocations[kind] = list(self._read_relocations(reader, bodies[kind]))
        self.alignments: list[int] = []
        self.symbols: list[_Symbol] = []
        linking = customs["linking"]
        if linking.number() != 2:
            raise CompilerBug("linking", "the object is of another version of WebAssembly's conventions")
        for kind, body in _sections(linking):
            if kind == _SEGMENTS:
                self.alignments = list(self._segments(_Reader(body)))
            elif kind == _SYMBOLS:
                self.symbols = list(self._read_symbols(_Reader(body)))
        self.codes = list(self._pieces(_CODE, bodies.get(_CODE, b"\0")))
        self.segments = list(self._pieces(_DATA, bodies.get(_DATA, b"\0")))

    @staticmethod
    def _imports(reader: _Reader) -> dict[str, int]:
        """The functions that are imported, with the numbers of their types."""
        found: dict[str, int] = {}
        for _ in range(reader.number()):
            reader.name()
            name, kind = reader.name(), reader.byte()
            if kind == 0:
                found[name] = reader.number()
            elif kind == 3:
                reader.take(2)
            else:  # a table has a type before its limits
                reader.take(1 if kind == 1 else 0)
                flags = reader.byte()
                reader.number()
                if flags & 1:
                    reader.number()
        return found

    @staticmethod
    def _segments(reader: _Reader) -> Iterator[int]:
        for _ in range(reader.number()):
            reader.name()
            yield 1 << reader.number()
            reader.number()

    def _read_symbols(self, reader: _Reader) -> Iterator[_Symbol]:
        imported = list(self.imported)
        for _ in range(reader.number()):
            kind, flags = reader.byte(), reader.number()
            undefined = bool(flags & _UNDEFINED)
            if kind == _DATA_SYMBOL:
                name = reader.name()
                segment, offset = (None, 0) if undefined else (reader.number(), reader.number())
                if not undefined:
                    reader.number()
                yield _Symbol(kind, name, segment, offset)
            elif kind == _SECTION_SYMBOL:
                yield _Symbol(kind, "", reader.number())
            else:
                index = reader.number()
                named = not undefined or flags & _NAMED
                name = reader.name() if named else imported[index] if kind == _FUNCTION_SYMBOL else ""
                yield _Symbol(kind, name, None if undefined and kind == _FUNCTION_SYMBOL else index)

    @staticmethod
    def _read_relocations(reader: _Reader, body: bytes) -> Iterator[_Relocation]:
        for _ in range(reader.number()):
            kind, at, index = reader.byte(), reader.number(), reader.number()
            addend = reader.signed() if kind in _WITH_ADDEND else 0
            number = _Reader(body, at)
            if kind in _WORDS:
                number.take(4)
            else:
                number.number()
            yield _Relocation(kind, at, number.at - at, index, addend)

    def _pieces(self, section: int, body: bytes) -> Iterator[_Piece]:
        """The functions of the code section, or the segments of the data section."""
        reader = _Reader(body)
        relocations = iter(sorted(self._relocations.get(section, []), key=lambda one: one.at))
        following = next(relocations, None)
        for number in range(reader.number()):
            if section == _DATA:
                # The mode, and an address that means nothing yet: i32.const, end.
                if reader.byte() != 0 or reader.byte() != 0x41:
                    raise CompilerBug("linking", "a data segment of an unknown sort")
                reader.signed()
                reader.byte()
            size = reader.number()
            start = reader.at
            own: list[_Relocation] = []
            while following is not None and following.at < start + size:
                own.append(following._replace(at=following.at - start))
                following = next(relocations, None)
            yield _Piece(reader.take(size), own, self.alignments[number] if section == _DATA else 1)


# ---- linking


class _Linker:
    def __init__(self, source: _Object, exported: Sequence[str], launched: Sequence[str]) -> None:
        self._source = source
        self._exported = exported
        self._launched = launched
        self._by_name = {s.name: s for s in source.symbols if s.kind == _FUNCTION_SYMBOL and s.index is not None}
        missing = [name for name in (*exported, *launched) if name not in self._by_name]
        if missing:
            raise CompilerBug("linking", f"nothing defines {', '.join(missing)}")
        #: the new numbers of functions by their old ones, in the order in which they were reached
        self._functions: dict[int, int] = {}
        self._table: dict[int, int] = {}
        self._segments: dict[int, int] = {}
        self._reach([self._index(name) for name in (*exported, *launched)])
        for name in launched:
            self._table_index(self._index(name))
        self._end = STACK_BYTES
        for segment in self._segments:
            alignment = source.segments[segment].alignment
            start = -(-self._end // alignment) * alignment
            self._segments[segment] = start
            self._end = start + len(source.segments[segment].body)

    def module(self) -> WasmModule:
        source = self._source
        types = [source.function_types[function] for function in self._functions]
        codes = [
            self._relocated(source.codes[function - len(source.imported)], short=True) for function in self._functions
        ]
        data = [(at, self._relocated(source.segments[segment], short=False)) for segment, at in self._segments.items()]
        exports = [(name, self._functions[self._index(name)]) for name in self._exported]
        size = _number(len(self._table) + 1)
        pages = -(-self._end // PAGE_BYTES)
        sections = [
            (_TYPE, source.types),
            (_IMPORT, _number(1) + _text("env") + _text("memory") + b"\2\0" + _number(pages)),
            (_FUNCTION, _vector([_number(one) for one in types])),
            (_TABLE, _vector([bytes([_FUNCTIONS, 1]) + size + size])),
            (_GLOBAL, _vector([bytes([_I32, 1, 0x41]) + _signed(STACK_BYTES) + b"\x0b"])),
            (_EXPORT, _vector([_text(name) + b"\0" + _number(index) for name, index in exports])),
            (_ELEMENTS, self._elements()),
            (_CODE, _vector([_number(len(code)) + code for code in codes])),
            (_DATA, _vector([b"\0\x41" + _signed(at) + b"\x0b" + _number(len(body)) + body for at, body in data])),
        ]
        image = _MAGIC + b"".join(bytes([kind]) + _number(len(body)) + body for kind, body in sections if body != b"\0")
        addresses = {
            symbol.name: self._segments[symbol.index] + symbol.offset
            for symbol in source.symbols
            if symbol.kind == _DATA_SYMBOL and symbol.index in self._segments
        }
        launched = {name: self._table[self._index(name)] for name in self._launched}
        return WasmModule(image, launched, addresses, self._end)

    def _elements(self) -> bytes:
        """The functions in the table. Its first place is nobody's: a null pointer."""
        if not self._table:
            return b"\0"
        return _vector([b"\0\x41\1\x0b" + _vector([_number(self._functions[function]) for function in self._table])])

    def _index(self, name: str) -> int:
        index = self._by_name[name].index
        assert index is not None
        return index

    def _table_index(self, function: int) -> int:
        return self._table.setdefault(function, len(self._table) + 1)

    def _reach(self, functions: Iterable[int]) -> None:
        """Number what these functions, and what they need, consists of."""
        source = self._source
        left: list[tuple[bool, int]] = [(True, function) for function in functions]
        missing: set[str] = set()
        while left:
            is_code, index = left.pop()
            if index in (self._functions if is_code else self._segments):
                continue
            if is_code:
                self._functions[index] = len(self._functions)
                piece = source.codes[index - len(source.imported)]
            else:
                self._segments[index] = 0
                piece = source.segments[index]
            for one in reversed(piece.relocations):
                if one.kind in (_TYPE_INDEX, _GLOBAL_INDEX, _TABLE_NUMBER):
                    continue
                symbol = source.symbols[one.index]
                if symbol.index is None:
                    missing.add(symbol.name)
                    continue
                left.append((symbol.kind == _FUNCTION_SYMBOL, symbol.index))
                if one.kind in (_TABLE_INDEX, _TABLE_INDEX_WORD):
                    self._table_index(symbol.index)
        if missing:
            raise CompilerBug("linking", f"nothing defines {', '.join(sorted(missing))} for WebAssembly")

    def _relocated(self, piece: _Piece, *, short: bool) -> bytes:
        parts: list[bytes] = []
        done = 0
        for one in piece.relocations:
            value = self._value(one)
            parts.append(piece.body[done : one.at])
            if one.kind in _WORDS:
                parts.append(value.to_bytes(4, "little"))
            else:
                assert short
                parts.append(_signed(value) if one.kind in _SIGNED else _number(value))
            done = one.at + one.size
        parts.append(piece.body[done:])
        return b"".join(parts)

    def _value(self, one: _Relocation) -> int:
        if one.kind == _TYPE_INDEX:
            return one.index
        if one.kind in (_GLOBAL_INDEX, _TABLE_NUMBER):
            return 0  # the stack pointer is the only global, and there is one table
        symbol = self._source.symbols[one.index]
        assert symbol.index is not None
        if one.kind == _FUNCTION_INDEX:
            return self._functions[symbol.index]
        if one.kind in (_TABLE_INDEX, _TABLE_INDEX_WORD):
            return self._table[symbol.index]
        if one.kind in _WITH_ADDEND:
            return self._segments[symbol.index] + symbol.offset + one.addend
        raise CompilerBug("linking", f"a relocation of kind {one.kind}, which is not known")


# ---- writing


def _number(value: int) -> bytes:
    """LEB128, unsigned."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _signed(value: int) -> bytes:
    found = bytearray()
    while not -64 <= value < 64:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value & 127)
    return bytes(found)


def _vector(parts: Sequence[bytes]) -> bytes:
    return _number(len(parts)) + b"".join(parts)


def _text(text: str) -> bytes:
    return _number(len(text)) + text.encode()
