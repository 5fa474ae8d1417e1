"""What a compilation gives when it goes on from the middle, from recorded IR or from IR that was edited.

The stage functions of Triton's own backend are called, with the IR in place of what led to it; passes before
the place are counted and not run. So the code that a stage runs beside its passes, and LLVM and the
assembler behind them, are those of an ordinary compilation.
"""

from __future__ import annotations

import ast
import dataclasses
import fcntl
import io
import os
import re
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend

from tracing.compiler.pipeline import Observer, Steps, stepwise
from tracing.errors import Problem

_KERNEL = "module { tt.func public @kernel() { tt.return } }"  # the smallest that every stage takes
_PREFIX = "tracing-resume-"
_HERE = re.compile(rf'loc\("[^"]*{_PREFIX}[^"]*":(\d+:\d+)\)')
_ERROR = re.compile(r"\b(error|fatal)\b\s*:")
_LINES = 8  # of diagnostics that a message shows
_lock = threading.RLock()


def resume(
    ir: str,
    *,
    target: str,
    options: Mapping[str, str],
    stage: str,
    index: int,
    drop: Collection[int] = (),
    last: str | None = None,
    observer: Observer | None = None,
    entered: str | None = None,
    language: str = "triton",
    first: str = "ttir",
    file: str | None = None,
) -> dict[str, bytes | str]:
    """Compile IR from one place of the pipeline to its end, and give the artefact of every stage on the way.

    ir       -- the text that stands before pass `index`
    target   -- `Compilation.target`: "cuda:90", "hip:gfx942"
    options  -- `Compilation.options`
    stage    -- the stage of that pass: "ttir", "ttgir", "llir"
    index    -- of the pass in the whole compilation, as `PassStart.index`; one more than that of a stage's
                last pass means: after the stage's passes
    drop     -- indices of passes to leave out
    last     -- the artefact to end with: "ptx"; None: the backend's last one, "cubin" or "hsaco"
    observer -- is told of the passes that run
    entered  -- the IR before the stage's first pass, where that is not `index`. A backend that looks at it
                beside its passes needs it: Triton 3.8 for sm_90 chooses by it how LLVM vectorises
    language, first -- `Compilation.language`, `Compilation.first`
    file     -- where `ir` is from, for messages

    Cost: that of the rest of the compilation. C++'s messages are collected from file descriptor 2, so what
    other threads write there meanwhile appears at the end; one such call runs at a time.

    Raises Problem, with Triton's own message where there is one, for IR that does not parse or does not
    compile, for a target or an option that this Triton does not know, and for an index outside of its stage.
    """
    backend, parsed = _backend(target, options)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, _language(language))
    earlier, wanted = _split(target, list(stages), first, stage, last)
    metadata = {"hash": "", "target": backend.target, **vars(parsed)}
    steps = Steps([observer] if observer else [], first=index, drop=drop)
    with ExitStack() as stack:
        if observer is not None:
            stack.callback(observer.ended)
        said = stack.enter_context(_said(file))
        stack.enter_context(stepwise())
        steps.count = _passes_before(backend, stages, earlier, metadata)
        begin = steps.count
        source = _parsed(ir, backend, said)
        if index != begin:
            source.str_nodebug = _entered(entered, stage, index)
        artefacts: dict[str, bytes | str] = {}
        for name in wanted:
            source = _stage(steps, name, stages[name], source, metadata, said)
            artefacts[name] = source if isinstance(source, (str, bytes)) else str(source)
            if name == stage and not begin <= index <= steps.count:
                raise Problem(
                    f"pass {index} is not in stage {stage}",
                    f"it has passes {begin} to {steps.count - 1}; {steps.count} means: after all of them",
                )
    return artefacts


def options_of(options: Mapping[str, str]) -> dict[str, Any]:
    """The values of `Compilation.options`, as a backend's `parse_options` takes them.

    Libraries that are not on this machine are left out: the backend adds its own.

    Raises Problem for text that is no Python literal.
    """
    values = {name: _literal(name, text) for name, text in options.items()}
    libraries = values.get("extern_libs") or ()
    return values | {"extern_libs": tuple(one for one in libraries if Path(one[1]).exists())}


def _split(
    target: str, names: list[str], first: str, stage: str, last: str | None
) -> tuple[list[str], list[str]]:
    # the stages before `stage` that the compilation had, and those to run
    for name in (first, stage, last or stage):
        if name not in names:
            raise Problem(f"{target} has no stage {name}", f"stages: {', '.join(names)}")
    begin, end = names.index(stage), names.index(last) + 1 if last else len(names)
    if end <= begin:
        raise Problem(f"stage {last} is before stage {stage}", "end with a stage behind the one to start in")
    return names[names.index(first) : begin], names[begin:end]


def _literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Problem(
            f"option {name} is {text}, which is no Python literal",
            "write it as `tracing passes` shows it: num_warps=4, arch='sm90'",
        ) from None


def _backend(target: str, options: Mapping[str, str]) -> tuple[Any, Any]:
    name, _, arch = target.partition(":")
    try:
        known = GPUTarget(name, int(arch) if arch.isdecimal() else arch, 0)
        warp_size = make_backend(known).parse_options({}).warp_size
        backend = make_backend(GPUTarget(name, known.arch, warp_size))
        default = backend.parse_options({})
    except (RuntimeError, ValueError, TypeError, AssertionError, AttributeError) as error:
        raise Problem(
            f"this Triton does not know the target {target}: {error or type(error).__name__}",
            "targets are written cuda:90, hip:gfx942",
        ) from None
    try:
        return backend, dataclasses.replace(default, **options_of(options))
    except (TypeError, ValueError, AssertionError, FileNotFoundError) as error:
        raise Problem(
            f"this Triton does not take these options for {target}: {error}",
            "resume with the version of Triton that recorded them; `tracing show RUN` names it",
        ) from None


def _language(name: str) -> Language:
    try:
        return Language[name.upper()]
    except KeyError:
        raise Problem(
            f"this Triton does not compile the language {name}", "known are triton and gluon"
        ) from None


def _module(text: str, backend: Any) -> Any:
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", prefix=_PREFIX, suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def _parsed(text: str, backend: Any, said: Callable[[], str]) -> Any:
    try:
        return _module(text, backend)
    except RuntimeError as error:
        raise Problem(
            f"the IR does not parse: {said() or error}", "correct it there, and resume again"
        ) from None


def _passes_before(backend: Any, stages: Mapping[str, Any], names: list[str], metadata: Any) -> int:
    # how many passes the earlier stages have: they are run with every pass left out
    steps = Steps(first=sys.maxsize)
    module: Any = _module(_KERNEL, backend)
    for name in names:
        module = steps.stage(name, stages[name], module, dict(metadata))
    return steps.count


def _entered(text: str | None, stage: str, index: int) -> Callable[[], str]:
    # what the stage's own Python code gets when it asks for the IR that it was called with
    def str_nodebug() -> str:
        if text is None:
            raise Problem(
                f"the backend reads the IR that enters stage {stage}, and pass {index} is in its middle",
                "pass the IR before the stage's first pass, too",
            )
        return text

    return str_nodebug


def _stage(
    steps: Steps,
    name: str,
    run: Callable[[Any, Any], Any],
    source: Any,
    metadata: Any,
    said: Callable[[], str],
) -> Any:
    try:
        return steps.stage(name, run, source, metadata)
    except Problem:
        raise
    except Exception as error:  # each stage raises what it likes: C++ exceptions, PTXASError, AssertionError
        at = steps.running
        where = f"pass {at.index}, {at.name}," if at else f"stage {name}"
        remedy = "the IR is not one that it takes: look at what was edited or left out before it"
        raise Problem(f"{where} failed: {said() or _errors(str(error)) or error}", remedy) from None


@contextmanager
def _said(file: str | None) -> Iterator[Callable[[], str]]:
    # what C++ writes to file descriptor 2, past Python's sys.stderr
    quiet = redirect_stdout(io.StringIO())  # Triton prints the whole PTX where ptxas refuses it
    with _lock, quiet, _collected() as collected:
        start = os.fstat(collected).st_size
        yield lambda: _errors(os.pread(collected, 1 << 24, start).decode(errors="replace"), file or "IR")


@contextmanager
def _collected() -> Iterator[int]:
    # a file that has all that is written to descriptor 2
    sys.stderr.flush()
    if stat.S_ISREG(os.fstat(2).st_mode) and fcntl.fcntl(2, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
        yield 2  # collected already, as in a child process: what an abort says must stay there
        return
    with tempfile.TemporaryFile() as collected:
        before, told = os.dup(2), False
        os.dup2(collected.fileno(), 2)
        try:
            yield collected.fileno()
        except Problem:
            told = True
            raise
        finally:
            os.dup2(before, 2)
            os.close(before)
            if not told:
                collected.seek(0)
                os.write(2, collected.read())


def _errors(text: str, file: str = "IR") -> str:
    # MLIR's own diagnostics; what surrounds them (a stack, the module) is left out
    found = [line for line in text.splitlines() if _ERROR.search(line)]
    return "\n  ".join(_HERE.sub(rf"{file}:\1", line) for line in found[:_LINES])
