"""Find and load a case by name or path.

A case is a Python file with `build(device) -> Workload`; its docstring is its description. It is loaded
by path, as pytest loads tests, so any file is a case, and it can import the files next to it. Keyword
arguments of build that have a default are the case's options; see `tracing.program.case_options`.
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import re
import symtable
import sys
import tokenize
import traceback
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from shlex import quote
from types import ModuleType

from tracing.errors import Problem, message, page, summary
from tracing.model import Case, Workload
from tracing.model.one_line import one_line
from tracing.program.case_options import converted_options, options_of, split_options, written_options
from tracing.program.near_files import near_files

# of torch, for `.cuda()` without a GPU
_NO_GPU = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available")
_LONGEST = 600  # characters of an exception's first line
CASES = Path(__file__).parents[2] / "cases"


def known_cases() -> dict[str, Path]:
    """The cases of the working directory and of this repository, by name."""
    folders = (CASES, Path("cases"))
    return {
        path.stem: path
        for folder in folders
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    }


def described(path: Path) -> str:
    """The first sentence of a case's docstring; the file is not executed."""
    try:
        text = ast.get_docstring(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return ""
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".")


def missing_packages(path: Path) -> list[str]:
    """The packages that a case imports and that this environment lacks; the file is not executed."""
    names: set[str] = set()
    for one in (node for part in _top_level(path) for node in ast.walk(part)):
        if isinstance(one, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in one.names}
        elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
            names.add(one.module.partition(".")[0])
    there = {file.stem for file in path.parent.iterdir()} | sys.modules.keys()
    return [name for name in sorted(names - there) if importlib.util.find_spec(name) is None]


def find_case(name: str) -> Path:
    """The file of a case given by name or path; raises Problem with near names if there is none."""
    path = Path(name)
    if path.suffix == ".py" or path.is_file():
        if path.is_file():
            return path
        near = near_files(path) or near_cases(path.stem, likeness=0.6)
        listed = f"nearest: {', '.join(near)}; or " if near else ""
        raise Problem(
            f"there is no file {one_line(name)}", f"{listed}give a case by name or by the path of its file"
        )
    known = known_cases()
    if name in known:
        return known[name]
    if path.is_dir():
        raise Problem(
            f"{one_line(name)} is a folder without __main__.py", "name the file in it that is the program"
        )
    near = near_cases(name)
    listed = f"nearest: {', '.join(near)}" if near else f"known are {', '.join(sorted(known))}"
    raise Problem(
        f"there is no case {one_line(name)}", f"{listed}; or give the path of a file with build(device)"
    )


def near_cases(name: str, likeness: float = 0.4) -> list[str]:
    """The cases and Python files that a misspelt name may mean, nearest first; `NAME.py` if it exists.

    likeness -- of a case's name, at least: 0 to 1, 1 for equal names
    """
    file = Path(f"{name}.py")
    if file.is_file():
        return [str(file)]
    return [*get_close_matches(name, known_cases(), n=3, cutoff=likeness), *near_files(file)]


def require_case(name: str) -> Path:
    """The file of a case, which is not executed; raises Problem for what its text shows to be wrong.

    name -- a name or a path, and its options after a colon

    That is a file that is missing or binds no `build`, and an option that a written `build` does not take.
    """
    name, chosen = split_options(name)
    path = find_case(name).resolve()
    with suppress(SyntaxError, ValueError):  # the import reports it
        if not _binds_build(path):
            raise _not_a_case(path)  # a program, which an import would run
        if (options := written_options(path)) is not None:
            converted_options(path, options, chosen)
    return path


def load_case(name: str) -> Case:
    """Import a case's file; raises Problem if it cannot be imported, or lacks `build` or an option.

    Its folder becomes and stays the first of `sys.path`, as for a program.

    name -- a name or a path, and its options after a colon
    """
    path, (_, chosen) = require_case(name), split_options(name)
    _first_on_path(path.resolve().parent)
    module = import_file(path)
    build = getattr(module, "build", None)
    if not callable(build):
        raise _not_a_case(path)
    options = converted_options(path, options_of(build), chosen) if chosen else {}
    description = (module.__doc__ or "").strip()
    return Case(case_name(name), path, description, partial(build, **options) if options else build)


def case_name(name: str) -> str:
    """The name for runs of a case, with its options: "silu+rows=4"; it is safe in a path.

    name -- a name or a path, and its options after a colon

    Raises Problem if there is no such case.
    """
    name, chosen = split_options(name)
    return one_line("+".join([find_case(name).resolve().stem, *([",".join(chosen)] if chosen else [])]))


def _first_on_path(folder: Path) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:] = [str(folder), *(one for one in sys.path if one != str(folder))]


def _not_a_case(path: Path) -> Problem:
    record = f"tracing run {quote(os.path.relpath(path))}"
    return Problem(
        f"{path} is not a case: it has no build(device)",
        f"record it as a program: `{record}`, then `tracing judge latest`;"
        f" or add `def build(device: str) -> Workload`: {page('docs/case.md')}",
    )


def _binds_build(path: Path) -> bool:
    with tokenize.open(path) as file:
        top = symtable.symtable(file.read(), str(path), "exec")
    return any(
        one.get_name() == "build" and (one.is_assigned() or one.is_imported()) for one in top.get_symbols()
    )


def is_case(name: str) -> bool:
    """True if a name, with or without options, is that of a case or of a Python file."""
    name, _ = split_options(name)
    return name in known_cases() or name.endswith(".py") or Path(name).is_file()


def resembles_case(path: Path) -> bool:
    """True if a file imports `Workload`, or imports `tracing` and defines `build`; it is not executed."""
    top = _top_level(path)
    imports = [one for one in top if isinstance(one, ast.ImportFrom)]
    names = {name.name for one in imports if (one.module or "").startswith("tracing") for name in one.names}
    modules = {name.name for one in top if isinstance(one, ast.Import) for name in one.names}
    builds = any(isinstance(one, ast.FunctionDef) and one.name == "build" for one in top)
    return "Workload" in names or ("tracing" in modules and builds)


def _top_level(path: Path) -> list[ast.stmt]:
    try:
        return ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):  # Python reports the error when it runs the program
        return []


def defines_build(path: Path) -> bool:
    """True if a file defines `build(device)` at top level, so it is a case; the file is not executed.

    Of a file with a syntax error, which nothing parses, a line that defines it says so.
    """
    if not (top := _top_level(path)):
        return bool(re.search(rb"(?m)^def build\(\s*device\b", path.read_bytes()))
    functions = [one.args for one in top if isinstance(one, ast.FunctionDef) and one.name == "build"]
    return any([one.arg for one in (*own.posonlyargs, *own.args)][:1] == ["device"] for own in functions)


def build(case: Case, device: str) -> Workload:
    """Build a case's workload; raises Problem if it returns something else."""
    workload = case.build(device)
    if not isinstance(workload, Workload):
        raise Problem(
            f"build of {case.path} returned {type(workload).__name__}, not a Workload",
            "return tracing.Workload(fn, args)",
        )
    return workload


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path; raises Problem if it cannot be imported."""
    name = f"case_{path.stem}"  # a case called "torch" must not replace torch
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Problem(f"{path} is not a Python file", "give the path of one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look a module up by its name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Problem(
            f"{path} cannot be imported: {describe(error, path)}{_excerpt(error, path)}",
            "correct the file, then rerun the command",
        ) from error
    return module


def _excerpt(error: BaseException, path: Path) -> str:
    # the line of a file that raised, or that Python cannot read
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    code = linecache.getline(str(path), lines[-1] or 0).strip() if lines else ""
    return f"\n    {lines[-1]} | {code}" if code else ""


def describe(error: BaseException, path: Path) -> str:
    """An exception in one line: type, summary of the message, and the last line of `path` it came from.

    A longer line is cut: torch's lists all options of Inductor.
    """
    first_line = summary(message(error))
    first_line = first_line[:_LONGEST] + "…" * (len(first_line) > _LONGEST)
    kind = "" if isinstance(error, Problem) else type(error).__name__
    text = ": ".join(filter(None, (kind, first_line)))
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    if first_line.startswith(_NO_GPU):
        text += ": create tensors on `device`, which build receives, because this machine has no GPU"
    return f"{text} ({path.name}:{lines[-1]})" if lines else text
