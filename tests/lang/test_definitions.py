"""Where a definition ends, held against Python's own tokenizer and parser."""

import ast
import inspect
import textwrap

import pytest

from tinote.compiler.pysource.definitions import read_definition

FILE = textwrap.dedent(
    '''\
    import functools
    def one_line(): return 1
    @functools.cache
    @functools.wraps(
    one_line
    )
    def decorated(
        a,
    b=2,
    ):
        """Text
    that stands as far left
    # as the definition
    """
        x = a + \\
    b
    # a comment in between
        if x:

            return (
    x
    )
        # a comment at the end
    # another one

    class Outer:
        def method(self):
            def inner(y):
                return y
            # of the method
            return inner
        value = 3
        def last(self):
            return """
    # no comment"""
    def many():
        return """
    1
    2
    3
    4
    5
    6
    7
    8
    9
    10
    11
    12
    13
    14
    15
    16
    17
    18
    19
    20
    """
    async def waits(): pass
    k = one_line; m = 2
    def at_the_end():
        pass'''
)
LINES = FILE.splitlines(keepends=True)


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions() -> list[Definition]:
    return [node for node in ast.walk(ast.parse(FILE)) if isinstance(node, Definition)]


@pytest.mark.parametrize("whole", definitions(), ids=lambda node: node.name)
def test_a_definition_is_the_one_of_the_file(whole: Definition) -> None:
    first = min(node.lineno for node in (whole, *whole.decorator_list))
    text, statement = read_definition(LINES, first, "file")
    assert ast.dump(statement, include_attributes=True) == ast.dump(whole, include_attributes=True)
    assert text == "".join(LINES[first - 1 : whole.end_lineno])


def test_the_definition_that_is_asked_for_is_the_first_of_its_line() -> None:
    first = FILE[: FILE.index("k = one_line")].count("\n") + 1
    text, statement = read_definition(LINES, first, "file")
    assert text == "k = one_line; m = 2\n"
    assert isinstance(statement, ast.Assign) and ast.unparse(statement) == "k = one_line"


def test_every_function_of_a_large_module() -> None:
    lines = inspect.getsource(ast).splitlines(keepends=True)
    functions = [n for n in ast.walk(ast.parse("".join(lines))) if isinstance(n, ast.FunctionDef)]
    assert len(functions) > 100
    for function in functions:
        first = min(node.lineno for node in (function, *function.decorator_list))
        _, statement = read_definition(lines, first, "ast.py")
        assert ast.dump(statement, include_attributes=True) == ast.dump(function, include_attributes=True)


@pytest.mark.parametrize("text", ["    x: x)\n", "def f(:\n    pass\n", "def f():\n    'open\n"])
def test_what_cannot_be_parsed(text: str) -> None:
    with pytest.raises(SyntaxError):
        read_definition([text], 1, "file")
