"""Generates files from the C sources: the LLVM text of each platform family, and the numbers of `layout.py`.

    python tinote/runtime/native/generate.py

It imports nothing of the package, so that it also runs when the package waits for what it makes. The compiler is the
Clang in the `ziglang` wheel, in the version that the project's test extra names: it brings the headers of every
platform, and its LLVM is the one that llvmlite has.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

#: The names of platforms in file names and in the compiler's words.
PLATFORMS = {
    "x86_64-linux": "x86_64-linux-gnu",
    "aarch64-linux": "aarch64-linux-gnu",
    "x86_64-macos": "x86_64-macos",
    "aarch64-macos": "aarch64-macos",
    "x86_64-windows": "x86_64-windows-gnu",
    "aarch64-windows": "aarch64-windows-gnu",
}
#: WebAssembly, with the headers of its C library, none of which is linked.
_WASM = "wasm32-wasi-musl"
_FOLDER = Path(__file__).parent
_OPTIONS = (
    *("-std=c17", "-O2", "-g0", "-fPIC", "-S", "-emit-llvm", "-fno-discard-value-names"),
    # Short text: no loop of the runtime is long.
    *("-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops"),
    # Nothing that the JIT would have to link or register.
    *("-fno-sanitize=all", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
    *("-fno-strict-aliasing", "-fomit-frame-pointer"),
    *("-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wno-unused-command-line-argument"),
)
# The JIT compiles for the processor that it finds, and runs no more passes: of what Clang says about functions, these
# words still mean something.
_KEPT_ATTRIBUTES = ("noinline", "alwaysinline", "nounwind")
# Sums of two parts count on the rounding of each operation, and nobody asks for `errno`.
_WASM_OPTIONS = ("-ffp-contract=off", "-fno-math-errno", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint")
_LAYOUT = _FOLDER.parent / "layout.py"
_BEGIN, _END = "# --- made from native/layout.c: begin\n", "# --- made from native/layout.c: end\n"


def generated() -> dict[Path, str]:
    """What every generated file should hold."""
    head = f"; Made from runtime.c by generate.py with ziglang {metadata.version('ziglang')}.\n\n"
    files = {
        _FOLDER / f"{platform}.ll": head + _stripped(_compiled("runtime.c", target))
        for platform, target in PLATFORMS.items()
    }
    wasm = _stripped(_compiled("wasm.c", _WASM, *_WASM_OPTIONS))
    files[_FOLDER / "wasm32.ll"] = head.replace("runtime.c", "wasm.c") + wasm
    before, _, rest = _LAYOUT.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return {**files, _LAYOUT: before + _BEGIN + _numbers() + _END + after}


def main() -> None:
    """Write what has changed and say so."""
    for path, text in generated().items():
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != known:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'unchanged' if text == known else 'written'}")


def _compiled(source: str, target: str, *options: str) -> str:
    """The compiler's LLVM text of a source file."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.ll"
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *_OPTIONS, *options]
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        command += [source, "-o", str(result)]
        done = subprocess.run(command, cwd=_FOLDER, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{source} for {target}:\n{done.stderr}")
        return result.read_text(encoding="utf-8")


def _stripped(text: str) -> str:
    """LLVM text without what belongs to another processor, to optimisation that is over, or to one machine."""
    for number, words in re.findall(r"^attributes #(\d+) = \{(.*)\}$", text, re.MULTILINE):
        kept = "".join(f" {word}" for word in _KEPT_ATTRIBUTES if word in words.split())
        text = re.sub(rf" #{number}\b", kept, text)
    text = re.sub(r", ![\w.]+ !\d+", "", text)
    text = re.sub(r"^.*@llvm\.experimental\.noalias\.scope\.decl.*\n", "", text, flags=re.MULTILINE)
    # On Windows: the JIT finds functions of the system by their names, however far away they are.
    text = re.sub(r"^((?:declare|define) .*?)(?:dllimport|dso_local) ", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r" +; preds = .*$", "", text, flags=re.MULTILINE)
    dropped = r"^(?:!|attributes|target |source_filename|; ModuleID|; Function Attrs).*\n"
    text = re.sub(dropped, "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _numbers() -> str:
    """The numbers of `layout.c` as Python, in its order and with its comments; they are the same everywhere."""
    found = [
        dict(re.findall(r"^@number_(\w+) = .*constant i64 (-?\d+)", _compiled("layout.c", target), re.MULTILINE))
        for target in (*PLATFORMS.values(), _WASM)
    ]
    *_, values, wasm = found
    # On WebAssembly there is no thread pool.
    wasm = values | wasm
    if any(others != values for others in (*found[:-1], wasm)):
        raise RuntimeError(f"the layout is not the same everywhere: {found}")
    lines: list[str] = []
    for line in (_FOLDER / "layout.c").read_text(encoding="utf-8").splitlines():
        if line.startswith("// --- "):
            lines += ["", f"# {line.removeprefix('// ')}"]
        elif match := re.match(r"NUMBER\((\w+), .*\) // (.*)", line):
            lines.append(f"{match[1]} = {values[match[1]]}  # {match[2]}")
    return "\n".join(lines).lstrip("\n") + "\n"


if __name__ == "__main__":
    main()
