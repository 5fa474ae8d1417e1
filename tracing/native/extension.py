"""Compiles the C++ files of this folder into extension modules, once for each torch and Python.

The compiler is the one that Triton and Inductor use for their launchers: $CXX, c++, g++ or clang++. Without
one, and where a file does not compile, the recorder's Python form runs: the same records, more slowly.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
from torch.utils.cpp_extension import include_paths, library_paths

from tracing.environment import compiled_parts

_FOLDER = Path(__file__).parent
_FLAGS = ("-O2", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_SECONDS = 300  # for one file, on a busy machine; 30 on an idle one


class NotCompiledError(Exception):
    """A C++ file has no compiled form on this machine; the message says why."""


def extension(name: str) -> ModuleType:
    """The extension module of `<name>.cpp`, compiled at its first use on this machine.

    Raises NotCompiledError. Cost: 30 s at the first use, then 1 ms.
    """
    if not compiled_parts.wanted():
        raise NotCompiledError(f"{compiled_parts.SWITCH}=0")
    return _loaded(name)


@cache
def _loaded(name: str) -> ModuleType:
    source = _FOLDER / f"{name}.cpp"
    built = compiled_parts.cache() / f"{name}-{_key(source)}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not built.exists():
        _compile(source, built)
    spec = importlib.util.spec_from_file_location(f"tracing.native.{name}", built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NotCompiledError(f"{built} cannot be loaded: {error}") from error
    return module


def _key(source: Path) -> str:
    sources = [path.read_bytes() for path in (source, *sorted(_FOLDER.glob("*.h")))]
    facts = (sources, torch.__version__, torch.__file__, sys.version, *_FLAGS)
    return hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()


def _compiler() -> str:
    names = compiled_parts.compilers()
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise NotCompiledError(f"no C++ compiler: {', '.join(names)} not in PATH")
    return path


def _compile(source: Path, built: Path) -> None:
    # under a name of its own, then moved: several processes may compile at the same time
    compiler, part = _compiler(), built.with_name(f"{built.name}.{os.getpid()}")
    include = [f"-I{path}" for path in (*include_paths(), sysconfig.get_path("include"))]
    libraries = [f"-L{path}" for path in library_paths()]
    names = ["-lc10", "-ltorch_cpu", "-ltorch_python"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = [compiler, *_FLAGS, abi, *include, str(source), "-o", str(part), *libraries, *names]
    sys.stderr.write(f"tracing: compiling {source.name}, once for this torch and Python (some 20 s)\n")
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotCompiledError(f"{compiler}: {error}") from error
    if done.returncode != 0:
        part.unlink(missing_ok=True)
        raise NotCompiledError(f"{compiler} failed for {source.name}: {_first_error(done.stderr)}")
    part.replace(built)


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line]
    return (lines or text.splitlines() or ["no message"])[0]
