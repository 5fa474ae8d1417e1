"""Compiles the C++ files of this folder into extension modules, once for each torch and Python.

The compiler is the one that Triton and Inductor use for their launchers: $CXX, c++, g++ or clang++. Without
one, and where a file does not compile, the recorder's Python form runs: the same records, more slowly. A
compile that failed is not repeated with the same compiler: a file next to the compiled ones holds the reason.
Of several processes that start at the same time, one compiles; the others wait and load its result.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from tracing.environment import compiled_parts
from tracing.native import failed_compile
from tracing.native.file_lock import locked

# A C++ file -> what it makes faster.
PARTS = {
    "launches": "recording known launches in C++",
    "operator_observer": "recording known operators in C++",
}
_FOLDER = Path(__file__).parent
_TORCH = Path(torch.__file__).parent
_FLAGS = ("-O2", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_SECONDS = 300  # for one file, on a busy machine; 30 on an idle one
_reported: list[NotCompiledError] = []  # on standard error, by this process
_used: dict[str, ModuleType] = {}  # by name: those that this process has loaded


class NotCompiledError(Exception):
    """A C++ file has no compiled form on this machine; the message says why."""


def extension(name: str) -> ModuleType:
    """The extension module of `<name>.cpp`, compiled at its first use on this machine.

    Raises NotCompiledError; the first one of a process is also reported on standard error, unless the user
    asks for Python only. Cost: 30 s at the first use, then 1 ms.
    """
    return extension_of(_FOLDER / f"{name}.cpp")


def in_use(name: str) -> ModuleType | None:
    """The extension module of `<name>.cpp` if this process uses it; None: the Python form runs."""
    return _used.get(name) if compiled_parts.wanted() else None


def extension_of(source: Path) -> ModuleType:
    """The extension module of a C++ file, which may include the headers of this folder."""
    if not compiled_parts.wanted():
        raise NotCompiledError(f"{compiled_parts.SWITCH}=0")
    try:
        return _loaded(source)
    except NotCompiledError as error:
        _report(error)
        raise


def failure(name: str) -> str:
    """Why `<name>.cpp` is not used on this machine; empty: it is compiled, or its first use compiles it."""
    source = _FOLDER / f"{name}.cpp"
    try:
        if not compiled_parts.wanted():
            return f"{compiled_parts.SWITCH}=0"
        if not (built := _built(source)).exists():
            _usable_compiler(built)
    except NotCompiledError as error:
        return str(error)
    return ""


def _report(error: NotCompiledError) -> None:
    if _reported:
        return
    _reported.append(error)
    with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
        sys.stderr.write(
            f"tracing: {error}; recording continues in Python, which is slower; install a C++20 compiler, "
            f"or name one in CXX; {compiled_parts.SWITCH}=0 silences this line\n"
        )


@cache
def _loaded(source: Path) -> ModuleType:
    built = _built(source)
    if not built.exists():
        _compile_once(source, built)
    spec = importlib.util.spec_from_file_location(f"tracing.native.{source.stem}", built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NotCompiledError(f"{built} cannot be loaded: {error}") from error
    _used[source.stem] = module
    return module


def _built(source: Path) -> Path:
    sources = [path.read_bytes() for path in (source, *sorted(_FOLDER.glob("*.h")))]
    facts = (sources, torch.__version__, torch.__file__, sys.version, *_FLAGS)
    key = hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()
    return compiled_parts.cache() / f"{source.stem}-{key}{sysconfig.get_config_var('EXT_SUFFIX')}"


def _usable_compiler(built: Path) -> str:
    # a compiler that has not failed to make this file before
    names = compiled_parts.compilers()
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise NotCompiledError(f"no C++ compiler: {', '.join(names)} not in PATH")
    if reason := failed_compile.earlier(built, path):
        raise NotCompiledError(reason)
    return path


def _compile_once(source: Path, built: Path) -> None:
    # a process that waited reads the result of the first one: the file, or why there is none
    _usable_compiler(built)  # raises without a line of progress
    lock = built.with_name(f"{built.name}.lock")
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        with _progress(source), locked(lock, seconds=_SECONDS):
            if not built.exists():
                _compile(_usable_compiler(built), source, built)
    except OSError as error:
        raise NotCompiledError(f"{source.name} cannot be compiled: {error}") from error


def _compile(compiler: str, source: Path, built: Path) -> None:
    # under a name of its own, then moved: without locks, several processes compile at the same time
    part = built.with_name(f"{built.name}.{os.getpid()}")
    # not by torch.utils.cpp_extension, which warns at its import where a CUDA build of torch has no GPU
    headers = _TORCH / "include"
    folders = (_FOLDER, headers, headers / "torch/csrc/api/include", sysconfig.get_path("include"))
    include = [f"-I{path}" for path in folders]
    libraries = [f"-L{_TORCH / 'lib'}"]
    names = ["-lc10", "-ltorch_cpu", "-ltorch_python"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = [compiler, *_FLAGS, abi, *include, str(source), "-o", str(part), *libraries, *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        reason = _first_error(done.stderr) if done.returncode != 0 else ""
    except subprocess.TimeoutExpired:
        reason = f"not finished after {_SECONDS} s"
    if reason:
        part.unlink(missing_ok=True)
        reason = f"{compiler} failed for {source.name}: {reason}"
        failed_compile.remember(built, compiler, reason)
        raise NotCompiledError(reason)
    part.replace(built)


def _progress(source: Path) -> AbstractContextManager[object]:
    # one line on standard error, on a terminal with the seconds so far
    what = f"tracing: compiling {source.name}, once for this torch and Python (some 20 s)"
    console = Console(stderr=True)
    if not console.is_terminal:
        sys.stderr.write(f"{what}\n")
        return nullcontext()
    columns = TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    bar = Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False)
    bar.add_task(what, total=None)
    return bar


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line]
    return (lines or text.splitlines() or ["no message"])[0]
